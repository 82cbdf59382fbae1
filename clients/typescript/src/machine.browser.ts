/** What a registration says of the machine without being told: nothing, outside Node. */

import type { RegisterInput } from "./api.js";

export async function describe(_url: string): Promise<Partial<RegisterInput>> {
  return {};
}

export function beforeTermination(_last: () => Promise<void>): () => void {
  return () => {};
}
