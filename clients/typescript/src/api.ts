/** Messages of the HTTP API, by their names in its document. */

import type { components } from "./schema.js";

type Schemas = components["schemas"];

export type Beat = Schemas["Beat"];
export type BeatReply = Schemas["BeatReply"];
export type ConsumeInput = Schemas["ConsumeInput"];
export type ConsumeReply = Schemas["ConsumeReply"];
export type EntryInput = Schemas["EntryInput"];
export type ErrorDetail = Schemas["ErrorDetail"];
export type Home = Schemas["Home"];
export type Instance = Schemas["Instance"];
export type InstanceDetail = Schemas["InstanceDetail"];
export type InstanceList = Schemas["InstanceList"];
export type PlaceReply = Schemas["PlaceReply"];
export type RegisterInput = Schemas["RegisterInput"];
export type Registered = Schemas["Registered"];
export type ReleaseInput = Schemas["ReleaseInput"];
export type ReleaseReply = Schemas["ReleaseReply"];
export type ReportInput = Schemas["ReportInput"];
export type ReportReply = Schemas["ReportReply"];

/** What an instance may say of itself. */
export type SelfStatus = NonNullable<Beat["status"]>;

/** How somebody left a game server: by intent, by a lost connection, or the hand-off never came about. */
export type How = NonNullable<ReleaseInput["how"]>;

/**
 * What a watcher sees. Snapshot and changes, applied in order, are what a list would say now. `added` for an
 * instance that is known under another life replaces it.
 *
 * NB: by hand, because the document has no schema for what a stream carries; `api/discovery.py` has the original.
 */
export interface Change {
  event: "snapshot" | "added" | "changed" | "removed";
  revision: number;
  /** With the revision it names a point in one history; a watch goes on from it. */
  revisionAt: string;
  instanceId: string;
  life: string;
  serverId: string;
  status: string;
  /** Of added and changed. */
  instance: Instance | null;
  /** Of snapshot: the whole list, which replaces what the watcher had. */
  instances: Instance[] | null;
}
