/** Client of Roost. Servers and backends: `connect`. Players: `enter` (waiting room) and `play` (gate). */

export * from "./api.js";
export * from "./errors.js";
export type { components, paths } from "./schema.js";

export { connect, type Client, type ConnectOptions, type Registering } from "./client.js";
export { Registration, type Directive } from "./heart.js";
export type { Wanted } from "./watch.js";
export { Door, type Admission, type DoorOptions } from "./door.js";
export type { Guest } from "./guests.js";

export { enter, refusalOf, type Entering, type EnterOptions, type Place, type Ticket } from "./waitingroom.js";

export { play, type Player, type PlayOptions, type Push, type Reply, type Standing, type Token } from "./play.js";
export type { WebSocketClass } from "./lines.js";
export type { Packable } from "./msgpack.js";
export type { Api, Fetch } from "./session.js";
