-- Texts and whole numbers as one text, with tabs between: the one way to join fields. The list is used up.
-- @include int
local function join_fields(fields)
  for at = 1, #fields do
    if type(fields[at]) == 'number' then
      fields[at] = int(fields[at])
    end
  end
  return table.concat(fields, '\t')
end
