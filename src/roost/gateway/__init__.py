"""HTTP over the capabilities: parse, call one verb, render."""
