/** What can be read of a signed pass without its key. */

import { decode } from "./msgpack.js";

/** The user that a ticket names, unverified: no reason to let somebody in. Empty if it is no ticket. */
export function ticketUser(ticket: string): string {
  try {
    const [, , payload = "", mac] = ticket.split(".");
    if (mac === undefined) return "";
    const text = atob(payload.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, character => character.charCodeAt(0));
    const parts = decode(bytes.subarray(1));  // one byte names the kind
    return Array.isArray(parts) && typeof parts[1] === "string" ? parts[1] : "";
  } catch {
    return "";
  }
}
