// How a server stands: one word for what an operator wants to know first.

export const nameOf = row => row.serverId || row.instanceId;

/** The address of a server in the console: its server id is unique within its type only. */
export const addressOf = (name, type) => `#/servers/${[name, type].filter(Boolean).map(encodeURIComponent).join('/')}`;

/** Whether an address means this server. */
export const isMeant = (row, name, type) => row.instanceId === name || row.serverId === name && (!type || row.type === type);

/** What an operator wants to know first. */
export function standing(row) {
  if (row.unhealthy) return 'unhealthy';
  if (row.status === 'suspect') return 'suspect';
  if (row.override?.outOfService) return 'out-of-service';
  if (row.override?.drain || row.status === 'draining') return 'draining';
  if (row.status !== 'ready') return row.status;
  if (!row.accepting && row.capacity && row.load >= row.capacity) return 'full';
  return row.accepting ? 'accepting' : 'out-of-service';
}
