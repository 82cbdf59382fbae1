/**
 * Every error of this client, in families by what the caller can do:
 *
 * - `Mistake`: change the call; repeating it as it is cannot help
 *   - `Unauthorized`: show another proof · `NotFound` · `Conflict`: look at what is there now · `Gone`
 *   - `ServerFull`, `TicketRefused`, `UnknownInstance` …: what one code means
 * - `Unavailable`: not now, come again after `retryAfterMs`
 * - `StoreError`: nothing was done (`StoreUnavailable`), nobody knows (`OutcomeUnknown`), the other side failed
 * - `GateRefused`: what a gate says; `reason` is its word
 *
 * `code` is the stable word for programs; docs/errors.md lists all, and a test compares.
 */

import type { ErrorDetail } from "./api.js";

/** Something went wrong in Roost. */
export class RoostError extends Error {
  static readonly code: string = "";
  /** Stable word for programs, such as `STORE_AWAY`. */
  readonly code: string;
  /** When to come again; 0: it is not a matter of time, or nobody knows. */
  retryAfterMs = 0;
  /** What to do next; may be empty. */
  hint = "";
  /** Of the request that was refused: it is in the gateway's log. */
  requestId = "";
  /** HTTP status of the refusal; 0 where it was none. */
  status = 0;

  constructor(message = "", code = "") {
    super(message);
    this.name = new.target.name;
    this.code = code || (new.target as typeof RoostError).code;
  }
}

/** The call cannot be carried out as it is. */
export class Mistake extends RoostError {}
/** What was shown does not prove enough. */
export class Unauthorized extends Mistake {}
/** It does not fit what is there now. */
export class Conflict extends Mistake {}
/** It was there and is not any more. */
export class Gone extends Mistake {}
/** The store did not do it, or nobody knows. */
export class StoreError extends RoostError {}

export class InvalidId extends Mistake { static override readonly code = "INVALID_ID"; }
export class InvalidInput extends Mistake { static override readonly code: string = "INVALID_INPUT"; }
export class InvalidServerList extends InvalidInput { static override readonly code = "INVALID_SERVER_LIST"; }
export class MalformedJson extends Mistake { static override readonly code = "MALFORMED_JSON"; }
export class StateTooLarge extends Mistake { static override readonly code = "STATE_TOO_LARGE"; }
export class MethodNotAllowed extends Mistake { static override readonly code = "METHOD_NOT_ALLOWED"; }
export class BodyTooLarge extends Mistake { static override readonly code = "BODY_TOO_LARGE"; }
export class RequestTimeout extends Mistake { static override readonly code = "REQUEST_TIMEOUT"; }
export class UpgradeRequired extends Mistake { static override readonly code = "UPGRADE_REQUIRED"; }
export class Forbidden extends Mistake { static override readonly code = "FORBIDDEN"; }
/** Come again after `retryAfterMs`. */
export class TooManyRequests extends Mistake { static override readonly code = "TOO_MANY_REQUESTS"; }
/** The world takes nobody new. */
export class WorldClosed extends Mistake { static override readonly code = "WORLD_CLOSED"; }

/** Of a receipt or signature: enter with a new one. Of a login: log in again. */
export class TokenRefused extends Unauthorized { static override readonly code = "TOKEN_REFUSED"; }
/** A valid API token is needed. */
export class NotAuthenticated extends Unauthorized { static override readonly code = "UNAUTHENTICATED"; }
/** Expired, forged or another world's: ask for the status of the place. */
export class TicketRefused extends Unauthorized { static override readonly code: string = "TICKET_REFUSED"; }
/** It let somebody in already. */
export class TicketUsed extends TicketRefused { static override readonly code = "TICKET_USED"; }

export class NotFound extends Mistake { static override readonly code: string = "NOT_FOUND"; }
/** Nobody knows this instance: register it (again). */
export class UnknownInstance extends NotFound { static override readonly code = "UNKNOWN"; }
export class UnknownWorld extends NotFound { static override readonly code = "UNKNOWN_WORLD"; }
/** No server holds this user. */
export class UnknownBinding extends NotFound { static override readonly code = "UNKNOWN_BINDING"; }
export class UnknownHolder extends NotFound { static override readonly code = "UNKNOWN_HOLDER"; }
export class UnknownJob extends NotFound { static override readonly code = "UNKNOWN_JOB"; }
export class UnknownOrder extends NotFound { static override readonly code = "UNKNOWN_ORDER"; }
export class NoDemo extends NotFound { static override readonly code = "NO_DEMO"; }

/** This person is connected here already: close the other connection first. */
export class AlreadyConnected extends Conflict { static override readonly code = "ALREADY_CONNECTED"; }
/** This server takes nobody more; the ticket stays good. */
export class ServerFull extends Conflict { static override readonly code = "SERVER_FULL"; }
/** Report first, then consume. */
export class ServerNotReported extends Conflict { static override readonly code = "SERVER_NOT_REPORTED"; }
/** A later life of this instance is registered: stop this one. */
export class FencedInstance extends Conflict { static override readonly code = "FENCED"; }
/** Another live instance of this type has this server id. */
export class ServerIdTaken extends Conflict { static override readonly code = "SERVER_ID_TAKEN"; }
export class PolicyConflict extends Conflict { static override readonly code = "POLICY_CONFLICT"; }
export class PlacementConflict extends Conflict { static override readonly code = "PLACEMENT_CONFLICT"; }
export class SymbolMoving extends Conflict { static override readonly code = "SYMBOL_MOVING"; }
export class JobState extends Conflict { static override readonly code = "JOB_STATE"; }
export class LastServer extends Conflict { static override readonly code = "LAST_SERVER"; }
export class NowhereToMove extends Conflict { static override readonly code = "NOWHERE_TO_MOVE"; }
export class SchemaPoint extends Conflict { static override readonly code = "SCHEMA_POINT"; }
export class DemoNotReady extends Conflict { static override readonly code = "DEMO_NOT_READY"; }

/** An operator removed this instance: it does not come back by itself. */
export class RemovedInstance extends Gone { static override readonly code = "REMOVED"; }
export class LogCut extends Gone { static override readonly code = "LOG_CUT"; }

/** It cannot be done just now. */
export class Unavailable extends RoostError { static override readonly code: string = "UNAVAILABLE"; }
/** Another server was not asked: certainly nothing was done. */
export class NotSent extends Unavailable { static override readonly code = "NOT_SENT"; }
export class ShardUnowned extends Unavailable { static override readonly code = "SHARD_UNOWNED"; }
export class DatabaseUnavailable extends Unavailable { static override readonly code = "DATABASE_AWAY"; }
export class DatabaseFull extends Unavailable { static override readonly code = "DATABASE_FULL"; }
export class DatabaseOverloaded extends Unavailable { static override readonly code = "DATABASE_OVERLOADED"; }

/** The store, or every gateway, is away: nothing was done, or doing it again is harmless. */
export class StoreUnavailable extends StoreError { static override readonly code: string = "STORE_AWAY"; }
export class StoreOverloaded extends StoreUnavailable { static override readonly code = "STORE_OVERLOADED"; }
/** It was sent and its reply was lost: look before you repeat it. */
export class OutcomeUnknown extends StoreError { static override readonly code = "OUTCOME_UNKNOWN"; }
/** The other side failed and does not say why. */
export class Internal extends StoreError { static override readonly code = "INTERNAL"; }
export class StoreRefused extends StoreError { static override readonly code: string = "STORE_REFUSED"; }
export class StoreAccessDenied extends StoreRefused { static override readonly code = "STORE_ACCESS_DENIED"; }
export class StoreFull extends StoreRefused { static override readonly code = "STORE_FULL"; }

/** Something that is not Roost answered: a proxy in between, or another program. */
export class Foreign extends StoreUnavailable {}

/** A gate refuses this. Nothing was executed, except where the entity itself says FAILED. */
export class GateRefused extends RoostError {
  /** The gate's word: QUEUE_FULL, MIGRATING, NO_SERVER, FAILED, TAKEN_OVER … */
  readonly reason: string;

  constructor(reason: string, message = "", retryAfterMs = 0) {
    super(message ? `${reason}: ${message}` : reason, reason);
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

type ErrorClass = { new (message?: string, code?: string): RoostError; readonly code: string };

const CLASSES: readonly ErrorClass[] = [
  InvalidId, InvalidInput, InvalidServerList, MalformedJson, StateTooLarge, MethodNotAllowed, BodyTooLarge,
  RequestTimeout, UpgradeRequired, Forbidden, TooManyRequests, WorldClosed, TokenRefused, NotAuthenticated,
  TicketRefused, TicketUsed, NotFound, UnknownInstance, UnknownWorld, UnknownBinding, UnknownHolder, UnknownJob,
  UnknownOrder, NoDemo, AlreadyConnected, ServerFull, ServerNotReported, FencedInstance, ServerIdTaken,
  PolicyConflict, PlacementConflict, SymbolMoving, JobState, LastServer, NowhereToMove, SchemaPoint, DemoNotReady,
  RemovedInstance, LogCut, Unavailable, NotSent, ShardUnowned, DatabaseUnavailable, DatabaseFull,
  DatabaseOverloaded, StoreUnavailable, StoreOverloaded, OutcomeUnknown, Internal, StoreRefused, StoreAccessDenied,
  StoreFull,
];

/** Whether nothing was done, and the same call may be taken a moment later. */
export function isNotNow(error: unknown): boolean {
  return [StoreUnavailable, Unavailable, TooManyRequests, RequestTimeout].some(one => error instanceof one);
}

/** Whether the call was refused: neither is it done already, nor may the same call be taken later. */
export function isRefusal(error: unknown): boolean {
  return error instanceof RoostError && !(error instanceof StoreError) && !isNotNow(error);
}

/** Each code and the class that it stands for. */
export const ERRORS: ReadonlyMap<string, ErrorClass> = new Map(CLASSES.map(one => [one.code, one]));

/** The error that a gateway's refusal stands for; a code that is not known here is a plain `RoostError`. */
export function errorOf(detail: ErrorDetail, status = 0, retryAfterMs = 0): RoostError {
  const error = new (ERRORS.get(detail.code) ?? RoostError)(detail.message, detail.code);
  error.hint = detail.hint ?? "";
  error.requestId = detail.requestId ?? "";
  error.status = status;
  error.retryAfterMs = retryAfterMs;
  return error;
}
