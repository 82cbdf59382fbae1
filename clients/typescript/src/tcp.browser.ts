/** TCP to a gate: there is none outside Node. */

import { InvalidInput } from "./errors.js";
import type { Line, LineListener } from "./lines.js";

export async function openTcp(url: string, _listener: LineListener, _connectMs: number): Promise<Line> {
  throw new InvalidInput(`${url}: only Node can speak TCP; use the gate's WebSocket`);
}
