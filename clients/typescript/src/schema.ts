// Made by `npm run generate` from `roost openapi`; do not edit.

export interface paths {
    "/admin/v1/hotfix": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Move all users off these entity servers: the same job as /drain/v1/jobs */
        get: operations["start_hotfix_by_get"];
        put?: never;
        /** Move all users off these entity servers: the same job as /drain/v1/jobs */
        post: operations["start_hotfix"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** State of this process and its store */
        get: operations["get_status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/entry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take a place in the line, or get a ticket at once */
        post: operations["enter_queue"];
        /** Give up a place or a ticket */
        delete: operations["leave_queue"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The place as it changes, as server-sent events; an open stream counts as being there */
        get: operations["watch_place"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a person has: a place, a ticket, or nothing */
        get: operations["get_place"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/queue/tickets/consume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let the holder of a ticket into a game server; only this admits */
        post: operations["consume_ticket"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/v1/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What operators did, newest first: who, when, from where, to what, and what came of it */
        get: operations["list_audit_entries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/v1/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The same as JSON lines, oldest first, all of them */
        get: operations["get_audit_export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is logged in; in profile dev a browser on this machine is, by itself */
        get: operations["get_session"];
        put?: never;
        /** Log in with a token: the answer sets a cookie that counts wherever a token does */
        post: operations["create_session"];
        /** Log out: the cookie is taken away, and no copy of it counts any more */
        delete: operations["remove_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every token, without secrets */
        get: operations["list_tokens"];
        put?: never;
        /** Make a token; its secret is shown this once */
        post: operations["create_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/v1/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a token; refused everywhere within two seconds */
        delete: operations["revoke_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bind/v1/servers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The servers that hold users: who takes new ones, and how many each has */
        get: operations["list_holders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bind/v1/servers/{serverId}/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The users that a server holds, page by page */
        get: operations["list_held_users"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bind/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where a user is, for who does not know whether they are anywhere */
        get: operations["list_homes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bind/v1/users/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which server holds a user, since when and why */
        get: operations["get_home"];
        put?: never;
        post?: never;
        /** Take a user away from the server that holds them; what it has not saved may be lost */
        delete: operations["release_home"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bind/v1/users/{userId}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How a user came to where they are, newest first */
        get: operations["get_home_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bind/v1/users/{userId}/moves": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What became of the attempts to move a user to another server, newest first */
        get: operations["list_moves"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drain/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The jobs, newest first */
        get: operations["list_drains"];
        put?: never;
        /** Move all users off servers, or from crowded to empty ones; or tell what that would do */
        post: operations["start_drain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drain/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A job: who has moved, who has not and why, how fast, at what pause */
        get: operations["get_drain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drain/v1/jobs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End a job; who has moved stays where they are */
        post: operations["cancel_drain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drain/v1/jobs/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Move nobody more for now */
        post: operations["pause_drain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drain/v1/jobs/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the gates counted: lost, doubled, reordered; never zero where a gate is missing */
        get: operations["report_drain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drain/v1/jobs/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Go on with a job that is paused */
        post: operations["resume_drain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drain/v1/jobs/{id}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Move those who have moved back to where they came from */
        post: operations["rollback_drain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events/v1": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Everything that happens, as server-sent events with a sentence each; Last-Event-ID goes on */
        get: operations["watch_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The process is alive */
        get: operations["check_liveness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lb/v1/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who was considered for a key, who was refused and why */
        get: operations["explain_selection"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lb/v1/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Which share of keys a change of the fleet would move */
        post: operations["preview_ring"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lb/v1/ring": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How keys spread over servers; points=720 also draws the circle */
        get: operations["get_ring"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lb/v1/select": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The server for a key */
        get: operations["select_server"];
        put?: never;
        /** The servers for many keys at once */
        post: operations["select_servers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Prometheus metrics */
        get: operations["get_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This API as OpenAPI 3.1 */
        get: operations["get_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/advice": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which symbols to move so that the shards share the load, by what was measured */
        get: operations["get_advice"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/ids/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a number looks like, read as an order id */
        get: operations["explain_id"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/orders/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An order as its last command left it */
        get: operations["get_order"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/placement": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The symbols that are not where their hash puts them, or on their way */
        get: operations["get_placement"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/placement/{symbol}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where a symbol is served, and by whom */
        get: operations["get_symbol"];
        /** Serve a symbol elsewhere: it moves with its open orders while it trades */
        put: operations["move_symbol"];
        post?: never;
        /** Serve a symbol where its hash puts it; it moves back if it is elsewhere */
        delete: operations["unpin_symbol"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/shards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who owns each of the shards, until when, and how it is doing */
        get: operations["list_shards"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/symbols/{symbol}/halt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take no new orders for a symbol; cancels go on */
        post: operations["halt_symbol"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/symbols/{symbol}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The book of a symbol as it stood at a command of its shard, rebuilt from the log */
        get: operations["replay_symbol"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/orders/v1/symbols/{symbol}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take orders for a symbol again */
        post: operations["resume_symbol"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/overview/v1": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Everything at a glance: worlds, servers, homes, jobs, orders, health, what needs attention */
        get: operations["get_overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queue/v1/worlds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every world */
        get: operations["list_worlds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queue/v1/worlds/{world}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One world: its line, its servers, its numbers */
        get: operations["get_world"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change mode, message, limit or rate of a world */
        patch: operations["update_world"];
        trace?: never;
    };
    "/queue/v1/worlds/{world}/forecast": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** How long people would wait under another limit or rate; changes nothing */
        post: operations["preview_world"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queue/v1/worlds/{world}/people/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What somebody has here: their place, ticket or server; looking changes nothing */
        get: operations["get_person"];
        put?: never;
        post?: never;
        /** Take somebody's place away */
        delete: operations["remove_from_queue"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queue/v1/worlds/{world}/servers/{serverId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Take a server's present life out of the ledger, whatever discovery says */
        delete: operations["remove_server"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queue/v1/worlds/{world}/servers/{serverId}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Somebody has left a game server */
        post: operations["release_user"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queue/v1/worlds/{world}/servers/{serverId}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** How many people are on a game server */
        post: operations["report_users"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Requests can be served; 503 says why not */
        get: operations["check_readiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The health of every server, the unhealthy first, with the votes of the checkers */
        get: operations["get_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/instances": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Live instances; verify=true also probes them */
        get: operations["list_instances"];
        put?: never;
        /** Register an instance */
        post: operations["register_instance"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/instances/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One instance, living or gone, with its history; verify=true also probes it */
        get: operations["get_instance"];
        put?: never;
        post?: never;
        /** Take an instance out; cause=removed needs the scope admin, and it does not come back by itself */
        delete: operations["remove_instance"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/instances/{id}/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Renew the lease; OK or DRAIN */
        post: operations["send_heartbeat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/instances/{id}/override": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Override: drain, out of service, weight; an empty one lifts it */
        put: operations["override_instance"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/prometheus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Targets for Prometheus http_sd; an error, never an empty list, when the store is away */
        get: operations["list_prometheus_targets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/prometheus/performance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Numeric performance fields of every instance as gauges */
        get: operations["get_prometheus_performance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sd/v1/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every change as server-sent events; Last-Event-ID goes on */
        get: operations["watch_instances"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AdviceView
         * @description Ratios: the load of the fullest shard by that of the mean one; 1 is even.
         */
        AdviceView: {
            after: number;
            before: number;
            /** @description The hottest symbol's load by that of the mean shard: no placement is better than this, nor than 1. */
            ceiling: number;
            hottest: string;
            /** @description Empty: as even as it gets, or nothing happens. */
            moves: components["schemas"]["MoveAdvice"][];
            /** @description Shards of which nothing is known. */
            unowned: number[];
        };
        /** Asking */
        Asking: {
            connection: string;
            userId: string;
        };
        /**
         * Attention
         * @description Something that a person should look at.
         */
        Attention: {
            /**
             * @description Which of the things that may need a person it is, for readers that say it in their own words.
             * @default
             */
            code: string;
            /** @enum {unknown} */
            level: "error" | "info" | "warning";
            /**
             * @description What varies in them.
             * @default {}
             */
            params: {
                [key: string]: string;
            };
            subject: string;
            todo: string;
            what: string;
        };
        /**
         * AuditEntry
         * @description One act of an operator.
         */
        AuditEntry: {
            /** @description What was done: `drain.start`. */
            action: string;
            /** @description How it was left, or what was ordered. */
            after: unknown;
            at: string;
            /** @description How it was, as far as that is known; null: not known. */
            before: unknown;
            /** @description Why it was refused. */
            code: string;
            /** @description Address that the request came from. */
            from: string;
            id: string;
            /** @description Of the token that was shown. */
            name: string;
            /** @enum {unknown} */
            outcome: "done" | "refused";
            requestId: string;
            /** @description What the token allowed. */
            scopes: string[];
            /** @description To what: `job/01J…`. */
            target: string;
            tokenId: string;
            /** @enum {unknown} */
            via: "cli" | "console" | "http";
        };
        /** AuditPage */
        AuditPage: {
            /** @description Newest first. */
            entries: components["schemas"]["AuditEntry"][];
            /**
             * @description The `before` of the page after this one; empty: there is none.
             * @default
             */
            next: string;
        };
        /**
         * Beat
         * @description What rides on a heartbeat; what is left out stays as it was.
         */
        Beat: {
            /** @default  */
            life?: string;
            /** @default null */
            load?: number | null;
            /** @default null */
            performance?: Record<string, unknown> | null;
            /**
             * @description Of this life, as it was given last: so a new one is given when the keys that sign are changed.
             * @default
             */
            proof?: string;
            /** @default null */
            status?: ("draining" | "initializing" | "ready") | null;
            /**
             * @description How long ago the main loop turned; a beat without progress does not renew.
             * @default 0
             */
            tickAgeMs?: number;
        };
        /** BeatReply */
        BeatReply: {
            /**
             * @description A new proof of this life, where the one that the beat showed is not by the key that signs now.
             * @default
             */
            proof: string;
            /** @enum {unknown} */
            status: "DRAIN" | "OK";
        };
        /**
         * BookView
         * @description The book of a symbol as it stood at a command of its shard's log.
         */
        BookView: {
            /** @description The best first; of each side the first thousand orders. */
            asks: components["schemas"]["LevelView"][];
            atMs: number;
            bids: components["schemas"]["LevelView"][];
            /** @description Commands at which the machine failed; it failed at them live too, and they changed nothing. */
            failed: number;
            /** @description Why, if it is. */
            halted: string | null;
            /**
             * @description Commands up to the one that was asked for that the store has lost: what they did is not in the book.
             * @default 0
             */
            missing: number;
            /** @description `<shard>/<lane>` if the symbol had left this shard. */
            movedTo: string | null;
            /**
             * @description Open ones, all of them.
             * @default 0
             */
            orders: number;
            /** @description Of the last command that is in it, of whatever symbol; 0: none was. */
            seq: number;
            shard: number;
            symbol: string;
        };
        /**
         * CertificateView
         * @description What the gates counted while the users moved.
         */
        CertificateView: {
            answered: number;
            disconnected: number | null;
            doubled: number | null;
            /** @description Moved though they said that they cannot: the deadline was over. */
            forced: number;
            /** @description That have told their last counts. */
            gates: number;
            /** @description Whether it is complete and nothing was lost, doubled, reordered or disconnected. */
            holds: boolean;
            /** @description Whether every gate has told all of its counts. If not, what is missing is unknown, not zero. */
            isComplete: boolean;
            job: string;
            /** @description The same for people. */
            lines: string[];
            longestPauseMs: number;
            /** @description Null: nobody knows, because a gate is missing. A number beside a missing gate is the least. */
            lost: number | null;
            /** @description Gates that have not told their last counts. */
            missing: string[];
            moved: number;
            /** @description Why it is incomplete, a line for each gate. */
            notes: string[];
            /** @description Without an outcome yet. */
            open: number;
            refused: number;
            released: number;
            reordered: number | null;
            requests: number;
            returned: number;
            users: number;
        };
        /**
         * CheckedServer
         * @description One server as a health checker sees it.
         */
        CheckedServer: {
            accepting: boolean;
            group: string;
            healthy: boolean;
            instanceId: string;
            lastHeartbeat: string;
            life: string;
            /**
             * @description What it last answered; none if it declares no health check or was not asked yet.
             * @default null
             */
            probe: components["schemas"]["Probe"] | null;
            serverId: string;
            /** @enum {unknown} */
            status: "draining" | "initializing" | "no-response" | "ready" | "suspect" | "terminated";
            type: string;
            /** @description How many of the up to three checkers that judge it find it unhealthy. */
            votes: number;
        };
        /** ClassView */
        ClassView: {
            away: number;
            name: string;
            perSecond: number;
            /** @description Of the tickets, while people of every class wait. */
            share: number;
            waiting: number;
        };
        /** Considered */
        Considered: {
            serverId: string;
            /** @description Empty if it takes new users. */
            whyNot: string;
        };
        /** ConsumeInput */
        ConsumeInput: {
            /** @description Which connection asks; a retry of the same one gets the same answer. At most 128 bytes of UTF-8, no braces, spaces or control characters. */
            connection: string;
            /** @description Of this server, as discovery gave it. */
            life: string;
            /**
             * @description Of the server's life, as its registration returned it; not needed with a token bound to the server.
             * @default
             */
            proof?: string;
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters. */
            serverId: string;
            ticketId: string;
            /** @default main */
            world?: string;
        };
        /** ConsumeReply */
        ConsumeReply: {
            leftMs: number;
            nickname: string;
            /** @description Ordinal of the consume in this life of the server; goes into its reports. */
            number: number;
            region: string;
            /**
             * @description Context of the trace that the entry began, for spans of the server; empty: it was not sampled.
             * @default
             */
            traceparent: string;
            userId: string;
        };
        /**
         * DrainInput
         * @description What to empty, and how.
         */
        DrainInput: {
            /**
             * @description Who asks, for the record; printable.
             * @default
             */
            by?: string;
            /**
             * @description So many percent move first, then the job pauses until it is resumed; 0: all at once.
             * @default 0
             */
            canary?: number;
            /**
             * @description When users who cannot move now (`can_move`) are moved all the same. 0: as is set.
             * @default 0
             */
            deadlineSeconds?: number;
            /**
             * @description Instead of `servers`: so many of those with the fewest users, when fewer servers are needed. If a drain of as many runs, of whichever servers, it is the answer: an order that is repeated empties no others.
             * @default 0
             */
            emptiest?: number;
            /**
             * @default drain
             * @enum {unknown}
             */
            kind?: "drain" | "rebalance";
            /**
             * @description How long a user may be held up; who would be held longer stays and is tried later. 0: as is set.
             * @default 0
             */
            maxBlockMs?: number;
            /**
             * @description Only tell what would be done.
             * @default false
             */
            plan?: boolean;
            /**
             * @description Users in a second and source server, at most; less where the database or the moves are slow. 0: as is set (`ROOST_BINDING__DRAIN_RATE`).
             * @default 0
             */
            rate?: number;
            /**
             * @description Server ids to empty. A rebalance takes none: it finds the crowded ones itself.
             * @default []
             */
            servers?: string[];
            /**
             * @description Server ids that may take them; empty: all that take users.
             * @default []
             */
            to?: string[];
            /**
             * @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default entity
             */
            type?: string;
            /**
             * @description Of a rebalance: how many may move; 0: as many as it takes.
             * @default 0
             */
            users?: number;
            /**
             * @description Only servers of this version may take them; empty: of any.
             * @default
             */
            version?: string;
        };
        /**
         * DrainReply
         * @description Of the two, what was asked for.
         */
        DrainReply: {
            /**
             * @description The job that was started, or the one that empties these servers already.
             * @default null
             */
            job: components["schemas"]["JobView"] | null;
            /** @default null */
            plan: components["schemas"]["PlanView"] | null;
        };
        /** EntryInput */
        EntryInput: {
            /** @default  */
            nickname?: string;
            /**
             * @description Whom they come with; believed without a signature in profile dev only. At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default
             */
            party?: string;
            /** @default 1 */
            partySize?: number;
            /** @default  */
            region?: string;
            /**
             * @description Of the login service; see `roost.sign_entry`.
             * @default
             */
            signature?: string;
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters. */
            userId: string;
            /** @default main */
            world?: string;
        };
        /** ErrorDetail */
        ErrorDetail: {
            /** @description Stable word for programs, such as STORE_AWAY. */
            code: string;
            /** @description What to do next; may be empty. */
            hint: string;
            /** @description What happened, for people. */
            message: string;
            requestId: string;
        };
        /** ErrorReply */
        ErrorReply: {
            error: components["schemas"]["ErrorDetail"];
        };
        /** Explained */
        Explained: {
            chosen: string | null;
            considered: components["schemas"]["Considered"][];
            key: string;
            /**
             * @description Where the key lies on the circle of the default strategy, from 0 to 1.
             * @default 0
             */
            position: number;
            refusal: string;
            strategy: string;
        };
        /**
         * Forecast
         * @description How long people would wait. What cannot be known is null: nobody leaves, and no place is free.
         */
        Forecast: {
            /** @description Places inside that would be free at once. */
            free: number;
            /** @description Tickets that can be issued in a second, at most. */
            issuePerSecond: number;
            /** @description For the last in the line. */
            lastSeconds: number | null;
            leavingPerSecond: number;
            /** @description For whoever is in the middle of the line. */
            medianSeconds: number | null;
            waiting: number;
        };
        /**
         * ForecastInput
         * @description A change of a world that is only thought of; what is left out stays as it is.
         */
        ForecastInput: {
            /**
             * @description How many leave the servers in a second; null: as the line has moved lately.
             * @default null
             */
            leavingPerSecond?: number | null;
            /**
             * @description People inside, at most; null: no limit but the servers'.
             * @default -1
             */
            limit?: number | null;
            /**
             * @description Tickets a second; null: no limit.
             * @default -1
             */
            rate?: number | null;
            /**
             * @description How many would wait; null: as many as do.
             * @default null
             */
            waiting?: number | null;
        };
        /** HaltInput */
        HaltInput: {
            /** @default  */
            why?: string;
        };
        /**
         * HaltReply
         * @description A halt or its end, as it stands in the log.
         */
        HaltReply: {
            durability: string;
            epoch: number;
            halted: boolean;
            lane: number;
            seq: number;
            shard: number;
            symbol: string;
            why: string;
        };
        /**
         * Happening
         * @description Something that happened, in one sentence and in parts.
         */
        Happening: {
            at: string;
            /** @default {} */
            details: Record<string, unknown>;
            /** @description What happened, one word: with the scope it names a text in other languages. */
            event: string;
            /**
             * @default info
             * @enum {unknown}
             */
            level: "error" | "info" | "warning";
            /** @enum {unknown} */
            scope: "audit" | "binding" | "discovery" | "drain" | "orders" | "overview" | "queue";
            /** @description What it happened to: `game/501`, `world/main`, `job/01J…`. */
            subject: string;
            /** @description In English, for people. */
            text: string;
        };
        /**
         * Health
         * @description The process runs and its event loop turns.
         */
        Health: {
            /**
             * @default ok
             * @enum {unknown}
             */
            status: "ok";
        };
        /**
         * HealthCheck
         * @description How the instance can be probed, at its own address only.
         */
        HealthCheck: {
            /** @enum {unknown} */
            kind: "grpc" | "http" | "tcp" | "udp";
            /** @default / */
            path?: string;
            /** @description Name of one of its ports. At most 128 bytes of UTF-8, no braces, spaces or control characters. */
            port: string;
        };
        /** HealthReport */
        HealthReport: {
            /** @description How many share the work; more than half of the up to three assigned to a server decide about it. */
            checkers: number;
            /** @description Turns to unhealthy that this gateway has told since it runs. */
            fell: number;
            rose: number;
            servers: components["schemas"]["CheckedServer"][];
        };
        /** HeldUsers */
        HeldUsers: {
            /** @description Where the next page begins; empty after the last one. */
            cursor: string;
            users: string[];
        };
        /**
         * Holder
         * @description A server that holds users.
         */
        Holder: {
            /** @description Whether a new user may be placed on it now. */
            accepting: boolean;
            /** @description Whether its lease holds: without it its users are placed anew. */
            alive: boolean;
            /** @description 0: no limit. */
            capacity: number;
            life: string;
            /** @description Whether discovery says that it takes new users, were it not for its seats. */
            open: boolean;
            serverId: string;
            users: number;
            version: string;
        };
        /** HolderList */
        HolderList: {
            /** @description Server id → whether it takes new users, as document 001 has it. */
            availableEntities: {
                [key: string]: boolean;
            };
            /** @description Server id → how many users it holds. */
            binders: {
                [key: string]: number;
            };
            servers: components["schemas"]["Holder"][];
        };
        /**
         * Home
         * @description Who holds a user.
         */
        Home: {
            /** @description The number of this grant, µs; it only rises. */
            epoch: number;
            life: string;
            /** @description Empty if they were released. */
            serverId: string;
            since: string;
            /** @enum {unknown} */
            state: "held" | "moving" | "released";
            type: string;
            userId: string;
            /** @description new, return, failover, seen, move-expired, renewed, reasserted, repaired; released, unbound, idle. */
            why: string;
        };
        /**
         * HomeChange
         * @description One line of a user's history.
         */
        HomeChange: {
            at: string;
            epoch: number;
            life: string;
            serverId: string;
            /** @description Server id of who held them before; empty if nobody did. */
            source: string;
            why: string;
        };
        /** HomeHistory */
        HomeHistory: {
            /** @description Newest first, as far back as the feed reaches. */
            changes: components["schemas"]["HomeChange"][];
        };
        /** HomeList */
        HomeList: {
            /** @description Empty where nobody holds the user. */
            homes: components["schemas"]["Home"][];
        };
        /** HomeNumbers */
        HomeNumbers: {
            /** @default null */
            movesPerSecond: number | null;
            /**
             * @description Whom the drains that move users now have still to move.
             * @default null
             */
            moving: number | null;
            /**
             * @description Who came to a server: for the first time, again, or because theirs was gone.
             * @default null
             */
            placedPerSecond: number | null;
            /** @default null */
            users: number | null;
        };
        /**
         * HotfixReply
         * @description As document 001 has it, and the job that does it.
         */
        HotfixReply: {
            /** @description Its id, for /drain/v1/jobs. */
            job: string;
            message: string;
            nodes: string[];
            /** @enum {unknown} */
            status: "success";
        };
        /**
         * IdView
         * @description What a number is, read as an order id.
         */
        IdView: {
            id: string;
            lane: number;
            madeAt: string;
            /** @description Whether it can be an id of ours. Only the shard's own lookup is proof. */
            plausible: boolean;
            /** @description In one line. */
            said: string;
            sequence: number;
            shard: number;
        };
        /**
         * Instance
         * @description One instance as others see it.
         */
        Instance: {
            /** @description Whether it takes a new user now: willing and not full. Discovery decides, all others read it. */
            accepting: boolean;
            /**
             * @description Users it can take; 0: no limit.
             * @default 0
             */
            capacity: number;
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon. */
            group: string;
            /** @default null */
            health: components["schemas"]["HealthCheck"] | null;
            /** @default  */
            hostname: string;
            instanceId: string;
            /** @default {} */
            labels: {
                [key: string]: string;
            };
            lastHeartbeat: string;
            life: string;
            /** @default 0 */
            load: number;
            /** @default null */
            override: components["schemas"]["Override"] | null;
            /**
             * @description At most 8192 bytes as JSON.
             * @default {}
             */
            performance: Record<string, unknown>;
            /** @default {} */
            ports: {
                [key: string]: number;
            };
            /** @default  */
            privateIp: string;
            /** @default null */
            probe: components["schemas"]["Probe"] | null;
            /**
             * @description Taken from the connection when empty.
             * @default
             */
            publicIp: string;
            /**
             * @description Stable name such as 501, unique among the live instances of a type. At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default
             */
            serverId: string;
            /** @enum {unknown} */
            status: "draining" | "initializing" | "no-response" | "ready" | "suspect" | "terminated";
            /**
             * @description At most 8192 bytes as JSON.
             * @default {}
             */
            systemInfo: Record<string, unknown>;
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon. */
            type: string;
            /**
             * @description The health checkers agree that it does not answer, whatever its beats say.
             * @default false
             */
            unhealthy: boolean;
            /** @default  */
            version: string;
            /** @default 100 */
            weight: number;
            /**
             * @description Accepting, whether full or not: it says it is ready, is not suspect (or its service is in panic), has a weight above 0, and no operator took it out. For those who count the seats themselves.
             * @default false
             */
            willing: boolean;
            /** @default  */
            zone: string;
        };
        /**
         * InstanceDetail
         * @description One instance, living or gone, with its history.
         */
        InstanceDetail: {
            history: components["schemas"]["LifeEvent"][];
            instance: components["schemas"]["Instance"] | null;
            status: ("draining" | "initializing" | "no-response" | "ready" | "suspect" | "terminated") | "removed";
        };
        /** InstanceList */
        InstanceList: {
            instances: components["schemas"]["Instance"][];
            revision: number;
            /**
             * @description With the revision it names a point in one history; a watch goes on from it.
             * @default 0
             */
            revisionAt: string;
        };
        /**
         * JobCounts
         * @description Users by what became of them. Those that are on their way are in none but `users`.
         */
        JobCounts: {
            /** @description Brought home by a rollback. */
            back: number;
            /** @description Of those that moved: though they said that they cannot, because the deadline was over. */
            forced: number;
            /** @description Had left by themselves. */
            gone: number;
            /** @description Cannot move just now, by their own word. */
            later: number;
            moved: number;
            pinned: number;
            /** @description Held, but not in memory: the next request places them anew. */
            released: number;
            /** @description Tried, and went on at the source: they are tried again. */
            returned: number;
            /** @description As many as there were to move. */
            users: number;
        };
        /** JobList */
        JobList: {
            /** @description Newest first. */
            jobs: components["schemas"]["JobView"][];
        };
        /**
         * JobNumbers
         * @description A drain that has not ended, or ended within the last ten minutes.
         */
        JobNumbers: {
            etaSeconds: number | null;
            id: string;
            moved: number;
            rateNow: number;
            servers: string[];
            /** @enum {unknown} */
            state: "cancelled" | "done" | "failed" | "paused" | "reconciling" | "rolling-back" | "running";
            users: number;
        };
        /**
         * JobView
         * @description A drain, or a rebalance.
         */
        JobView: {
            by: string;
            canary: number;
            /** @description Null while users move. */
            certificate: components["schemas"]["CertificateView"] | null;
            counts: components["schemas"]["JobCounts"];
            endedAt: string;
            /** @description Until everybody has moved, at the rate of now; null: nobody knows. */
            etaSeconds: number | null;
            id: string;
            /** @enum {unknown} */
            kind: "drain" | "rebalance";
            madeAt: string;
            pauses: components["schemas"]["Pauses"];
            /** @description User → why they cannot move; a hundred at most. */
            pinned: {
                [key: string]: string;
            };
            rate: number;
            /** @description Users in a second, of all servers together. */
            rateNow: number;
            /** @description Why the rate is what it is. */
            rateWhy: string;
            servers: string[];
            startedAt: string;
            /** @enum {unknown} */
            state: "cancelled" | "done" | "failed" | "paused" | "reconciling" | "rolling-back" | "running";
            to: string[];
            type: string;
            version: string;
            /** @description Why it is in this state; empty where nothing is to be said. */
            why: string;
        };
        /** LevelView */
        LevelView: {
            /** @description In the order in which they are served. */
            orders: components["schemas"]["RestingOrder"][];
            price: number;
            /** @description Of all its orders, what remains. */
            quantity: number;
        };
        /**
         * LifeEvent
         * @description One line of an instance's history.
         */
        LifeEvent: {
            at: string;
            event: string;
            life: string;
            status: string;
        };
        /** LoginInput */
        LoginInput: {
            /** @description An API token; it is not kept anywhere. */
            token: string;
        };
        /** Move */
        Move: {
            share: number;
            source: string | null;
            target: string | null;
        };
        /** MoveAdvice */
        MoveAdvice: {
            /** @description Commands a second. */
            rate: number;
            source: components["schemas"]["SpotView"];
            symbol: string;
            target: components["schemas"]["SpotView"];
        };
        /**
         * MoveInput
         * @description Where a symbol should be served.
         */
        MoveInput: {
            /**
             * @description The version of the placement that you have seen; nothing: whatever it is.
             * @default null
             */
            expected?: number | null;
            /**
             * @description Nothing: the lane that its hash gives it.
             * @default null
             */
            lane?: number | null;
            shard: number;
        };
        /** MoveList */
        MoveList: {
            /** @description Newest first; the last twenty of seven days. */
            moves: components["schemas"]["MoveView"][];
        };
        /**
         * MoveView
         * @description What became of one attempt to move a user.
         */
        MoveView: {
            at: string;
            job: string;
            /** @description moved, returned, later, pinned, released, gone. */
            outcome: string;
            /** @description Phase → ms; `total` is how long the user was held up. */
            phases: {
                [key: string]: number;
            };
            source: string;
            target: string;
            why: string;
        };
        /**
         * NewToken
         * @description A token with its secret, shown once and kept nowhere.
         */
        NewToken: {
            createdAt: string;
            id: string;
            name: string;
            scopes: ("admin" | "gameserver" | "read" | "register")[];
            /** @default  */
            serverId: string;
            token: string;
            /** @default [] */
            types: string[];
            /** @default [] */
            worlds: string[];
        };
        /** NodeInput */
        NodeInput: {
            serverId: string;
            /** @default 100 */
            weight?: number;
        };
        /**
         * OrderNumbers
         * @description Null where no order server has ever been.
         */
        OrderNumbers: {
            /** @default null */
            acceptedPerSecond: number | null;
            /** @default null */
            depth: number | null;
            /** @default null */
            owned: number | null;
            /** @default null */
            rejectedPerSecond: number | null;
            /** @default null */
            shards: number | null;
            /** @default null */
            violations: number | null;
        };
        /**
         * OrderView
         * @description An order as its last command left it.
         */
        OrderView: {
            account: string;
            id: string;
            price: number;
            quantity: number;
            remaining: number;
            /** @description Of its last command. */
            seq: number;
            shard: number;
            /** @enum {unknown} */
            side: "buy" | "sell";
            /** @enum {unknown} */
            state: "cancelled" | "filled" | "open";
            symbol: string;
        };
        /**
         * Override
         * @description What an operator ordered for an instance; survives its re-registration.
         */
        Override: {
            /** @default false */
            drain?: boolean;
            /**
             * @description The only life that `drain` is for, as a drain job orders it: a server that comes back takes users. Empty: every life, until it is lifted.
             * @default
             */
            drainLife?: string;
            /** @default false */
            outOfService?: boolean;
            /** @default null */
            weight?: number | null;
        };
        /** Overview */
        Overview: {
            at: string;
            attention: components["schemas"]["Attention"][];
            /**
             * @description Of the first of them: as Last-Event-ID of /events/v1 it goes on from there.
             * @default
             */
            eventId: string;
            health: components["schemas"]["PlatformHealth"];
            homes: components["schemas"]["HomeNumbers"];
            jobs: components["schemas"]["JobNumbers"][];
            orders: components["schemas"]["OrderNumbers"];
            /** @description The last fifty events, newest first. */
            recent: components["schemas"]["Happening"][];
            servers: components["schemas"]["ServerNumbers"];
            worlds: components["schemas"]["WorldNumbers"][];
        };
        /**
         * Pauses
         * @description How long users were held up, ms.
         */
        Pauses: {
            /**
             * @description Upper bounds of the buckets of `counts`; the last bucket has none.
             * @default []
             */
            boundsMs: number[];
            /**
             * @description Users by how long they were held up.
             * @default []
             */
            counts: number[];
            maxMs: number;
            p50Ms: number;
            p99Ms: number;
        };
        /**
         * PersonView
         * @description What somebody has in a world, as an operator sees it. Looking is no call of theirs.
         */
        PersonView: {
            /** @default 0 */
            awayAhead: number;
            /** @default  */
            cause: string;
            /** @default  */
            className: string;
            /** @default null */
            etaHighSeconds: number | null;
            /** @default null */
            etaSeconds: number | null;
            /**
             * @description Until their ticket ends, or the place that is held for them.
             * @default 0
             */
            leftMs: number;
            /** @default  */
            nickname: string;
            /**
             * @description 1 is next; 0: none.
             * @default 0
             */
            rank: number;
            /**
             * @description Where they are inside.
             * @default
             */
            serverId: string;
            /** @enum {unknown} */
            state: "away" | "held" | "inside" | "left" | "offered" | "unknown" | "waiting";
            userId: string;
            world: string;
        };
        /**
         * PlacedReply
         * @description What came of a change of place.
         */
        PlacedReply: {
            /** @description False: it was so already, or is on its way there. */
            changed: boolean;
            place: components["schemas"]["PlaceView"];
        };
        /** PlacementView */
        PlacementView: {
            /** @description How symbols that are not listed find their place. */
            selector: string;
            /** @description Those that the table names. */
            symbols: components["schemas"]["PlaceView"][];
            version: number;
        };
        /**
         * PlaceReply
         * @description What a person has. `rank` 1 is next; 0 means that there is nothing to wait for.
         */
        PlaceReply: {
            /**
             * @description People before them who are there.
             * @default 0
             */
            ahead: number;
            /**
             * @description People before them who are not there just now.
             * @default 0
             */
            awayAhead: number;
            /** @default null */
            etaHighSeconds: number | null;
            /** @default null */
            etaSeconds: number | null;
            /** @default 0 */
            expiresInMs: number;
            /** @default  */
            message: string;
            /** @default 0 */
            nextPollMs: number;
            /**
             * @description Until the world opens; before that the order is not drawn, and rank is how many take part.
             * @default 0
             */
            opensInMs: number;
            /** @default 0 */
            rank: number;
            /** @default  */
            receipt: string;
            /** @default  */
            serverUrl: string;
            /** @enum {unknown} */
            status: "ENTERED" | "NONE" | "PROMOTED" | "WAITING";
            /** @default  */
            ticketId: string;
            /** @default false */
            wasAway: boolean;
            /** @default main */
            world: string;
        };
        /**
         * PlaceView
         * @description Where a symbol is served.
         */
        PlaceView: {
            /** @default  */
            address: string;
            /** @enum {unknown} */
            how: "hash" | "moving" | "pinned" | "unreadable";
            lane: number;
            /** @default  */
            moveId: string;
            /**
             * @description Server id of who owns the shard; empty: nobody.
             * @default
             */
            owner: string;
            /**
             * @description What the table says where it cannot be read: nobody serves the symbol.
             * @default
             */
            record: string;
            shard: number;
            /** @description As it is spelled everywhere: upper case, no spaces. */
            symbol: string;
            /**
             * @description Where it moves.
             * @default null
             */
            to: components["schemas"]["SpotView"] | null;
            /** @description Of the placement; give it as `expected` to change what you have seen. */
            version: number;
        };
        /** PlannedServer */
        PlannedServer: {
            /** @description 0: no limit. */
            capacity: number;
            /** @description How many would leave it, or come to it. */
            moves: number;
            serverId: string;
            /** @description That it holds now. */
            users: number;
            version: string;
        };
        /**
         * PlanView
         * @description What a job would do.
         */
        PlanView: {
            /** @enum {unknown} */
            kind: "drain" | "rebalance";
            /** @description Users who cannot move just now, but soon. */
            later: number;
            /** @description What else to know before it is started. */
            notes: string[];
            /** @description User → why they cannot move just now; a hundred at most. */
            pinned: {
                [key: string]: string;
            };
            /** @description Until when there is somewhere to go back to, for people. */
            rollbackUntil: string;
            /** @description From where on a rollback is refused; empty: nowhere, as far as the servers say. */
            schemaPoint: string;
            /** @description Free ones at the targets; null: without limit. */
            seats: number | null;
            /** @description At the rate that was asked for. */
            seconds: number;
            sources: components["schemas"]["PlannedServer"][];
            targets: components["schemas"]["PlannedServer"][];
            type: string;
            users: number;
        };
        /** PlatformHealth */
        PlatformHealth: {
            /** @description What is led → by whom; null: by nobody. */
            leader: {
                [key: string]: string | null;
            };
            /** @description Of this gateway. */
            loopsFailing: string[];
            /** @enum {unknown} */
            store: "away" | "ok";
        };
        /**
         * Preview
         * @description What share of all keys would move, and from where to where.
         */
        Preview: {
            moved: number;
            moves: components["schemas"]["Move"][];
        };
        /**
         * PreviewInput
         * @description A change of the fleet that is only thought of.
         */
        PreviewInput: {
            /** @default [] */
            add?: components["schemas"]["NodeInput"][];
            /**
             * @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default *
             */
            group?: string;
            /** @default [] */
            remove?: string[];
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon. */
            type: string;
        };
        /**
         * Probe
         * @description What a probe of an instance found.
         */
        Probe: {
            /**
             * @description Whether the instance was asked at all; if not, `error` says why, and nothing follows of its health.
             * @default true
             */
            asked: boolean;
            /** @default  */
            error: string;
            latencyMs: number;
            ok: boolean;
        };
        /**
         * Ready
         * @description Requests can be served.
         */
        Ready: {
            /** @enum {unknown} */
            status: "ready";
            /**
             * @description Away: what is known is served from memory, everything else is refused with 503 for a while.
             * @default
             * @enum {unknown}
             */
            store: "" | "away";
            /**
             * @description Of a role that speaks to the store itself.
             * @default null
             */
            storeLatencyMs: number | null;
        };
        /** Registered */
        Registered: {
            heartbeatIntervalMs: number;
            instanceId: string;
            life: string;
            /**
             * @description That this life is the caller's, for calls to a waiting room with a token that is bound to no server.
             * @default
             */
            proof: string;
            ttlSeconds: number;
        };
        /**
         * RegisterInput
         * @description A record and the first beat with it.
         */
        RegisterInput: {
            /**
             * @description Users it can take; 0: no limit.
             * @default 0
             */
            capacity?: number;
            /**
             * @description Set when it registers again by itself after it was forgotten.
             * @default
             */
            formerLife?: string;
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon. */
            group: string;
            /** @default null */
            health?: components["schemas"]["HealthCheck"] | null;
            /** @default  */
            hostname?: string;
            /**
             * @description Made by the server (ULID) when empty. At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default
             */
            instanceId?: string;
            /** @default {} */
            labels?: {
                [key: string]: string;
            };
            /** @default 0 */
            load?: number;
            /**
             * @description At most 8192 bytes as JSON.
             * @default {}
             */
            performance?: Record<string, unknown>;
            /** @default {} */
            ports?: {
                [key: string]: number;
            };
            /** @default  */
            privateIp?: string;
            /**
             * @description Taken from the connection when empty.
             * @default
             */
            publicIp?: string;
            /**
             * @description Stable name such as 501, unique among the live instances of a type. At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default
             */
            serverId?: string;
            /**
             * @default ready
             * @enum {unknown}
             */
            status?: "draining" | "initializing" | "ready";
            /** @default {} */
            systemInfo?: Record<string, unknown> | string;
            /**
             * @description Silence after which it is dead; half of it makes it suspect. 0: what the profile says, 30 or 15 s.
             * @default 0
             */
            ttlSeconds?: number;
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon. */
            type: string;
            /** @default  */
            version?: string;
            /** @default 100 */
            weight?: number;
            /** @default  */
            zone?: string;
        };
        /** ReleaseInput */
        ReleaseInput: {
            connection: string;
            /**
             * @default clean
             * @enum {unknown}
             */
            how?: "clean" | "dropped" | "failed";
            life: string;
            /**
             * @description Of the server's life, as its registration returned it; not needed with a token bound to the server.
             * @default
             */
            proof?: string;
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters. */
            userId: string;
        };
        /** ReleaseReply */
        ReleaseReply: {
            /** @description How long the place is kept; 0: it is given up. */
            heldMs: number;
        };
        /** ReportInput */
        ReportInput: {
            capacity: number;
            /** @description The last consume that `users` counts. */
            counted: number;
            life: string;
            /** @description Of this report; a later one of the same life is larger. */
            number: number;
            /**
             * @description Of the server's life, as its registration returned it; not needed with a token bound to the server.
             * @default
             */
            proof?: string;
            /** @default  */
            url?: string;
            users: number;
        };
        /** ReportReply */
        ReportReply: {
            /**
             * @description Who is inside by what the waiting room knows, and asks to come in: release whom you do not have.
             * @default []
             */
            asking: components["schemas"]["Asking"][];
            consumed: number;
            /**
             * @description Whether the waiting room knows this life of the server; until then it brings no capacity.
             * @default true
             */
            known: boolean;
        };
        /** RestingOrder */
        RestingOrder: {
            account: string;
            createdMs: number;
            orderId: string;
            quantity: number;
            remaining: number;
        };
        /**
         * Ring
         * @description How keys spread over the servers of a service.
         */
        Ring: {
            nodes: components["schemas"]["RingNode"][];
            /**
             * @description The circle at so many places as were asked for, evenly spread: whose it is there, by its number in `nodes`; -1: nobody's.
             * @default []
             */
            points: number[];
        };
        /** RingNode */
        RingNode: {
            accepting: boolean;
            serverId: string;
            /** @description Of all keys, exactly. */
            share: number;
            weight: number;
            /** @default  */
            whyNot: string;
        };
        /**
         * Selected
         * @description The server for a key, or why there is none.
         */
        Selected: {
            /**
             * @description Who was chosen, then who else could be by the same strategy, best first, where they were asked for.
             * @default []
             */
            candidates: string[];
            /** @default  */
            host: string;
            key: string;
            /** @default {} */
            ports: {
                [key: string]: number;
            };
            /** @default  */
            refusal: string;
            serverId: string | null;
            /** @default  */
            zone: string;
        };
        /** SelectedList */
        SelectedList: {
            selections: components["schemas"]["Selected"][];
        };
        /** SelectInput */
        SelectInput: {
            /**
             * @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default *
             */
            group?: string;
            keys: string[];
            /**
             * @description The weight of a server in a new life grows over so many seconds.
             * @default 0
             */
            slowStartSeconds?: number;
            /**
             * @default consistent_hash
             * @enum {string}
             */
            strategy?: "consistent_hash" | "hash_ring" | "bounded_load" | "rendezvous" | "round_robin" | "least_connections" | "random" | "two_choices" | "singleton";
            /** @description At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon. */
            type: string;
            /**
             * @description Servers of this zone first; those of others where none of it takes users.
             * @default
             */
            zone?: string;
        };
        /**
         * ServerNumbers
         * @description Live instances by what keeps them from taking users; one may be in several of these.
         */
        ServerNumbers: {
            /** @default null */
            accepting: number | null;
            /** @default [] */
            byType: components["schemas"]["TypeNumbers"][];
            /** @default null */
            draining: number | null;
            /** @default null */
            full: number | null;
            /** @default null */
            outOfService: number | null;
            /** @default null */
            suspect: number | null;
            /** @default null */
            total: number | null;
            /** @default null */
            unhealthy: number | null;
        };
        /** ServerView */
        ServerView: {
            capacity: number;
            inDoubt: boolean;
            life: string;
            /** @description Whether it takes new users, by what discovery says of it. */
            open: boolean;
            serverId: string;
            url: string;
            /** @description The most that may be on it. */
            users: number;
        };
        /**
         * Session
         * @description Who is logged in, by a cookie that scripts cannot read.
         */
        Session: {
            /** @description Goes into the header X-CSRF-Token of every request that changes something. */
            csrf: string;
            /** @description Whether this gateway has a demo fleet to show: `/demo/v1`. */
            demo: boolean;
            expiresAt: string;
            /** @description Of the token. */
            name: string;
            namespace: string;
            profile: string;
            scopes: ("admin" | "gameserver" | "read" | "register")[];
            tokenId: string;
            version: string;
        };
        /** ShardList */
        ShardList: {
            shards: components["schemas"]["ShardView"][];
        };
        /**
         * ShardStatus
         * @description What the owner told with its last renewal of the lease, once a second.
         */
        ShardStatus: {
            /**
             * @description Commands that wait for their turn.
             * @default 0
             */
            depth: number;
            /** @default  */
            durability: string;
            /** @default 0 */
            failed: number;
            /**
             * @description Symbols that are.
             * @default 0
             */
            halted: number;
            /**
             * @description The busiest symbols, commands a second.
             * @default {}
             */
            hot: {
                [key: string]: number;
            };
            /**
             * @description Commands a second by lane, where there were any.
             * @default {}
             */
            lanes: {
                [key: string]: number;
            };
            /**
             * @description Commands that were acknowledged and that the store no longer had at the takeover: 0.
             * @default 0
             */
            lost: number;
            /**
             * @description Replays that came to another state: 0.
             * @default 0
             */
            mismatches: number;
            /**
             * @description Commands a second.
             * @default 0
             */
            rate: number;
            /**
             * @description Of its server, since it was started: commands that were not taken, by reason.
             * @default {}
             */
            rejected: {
                [key: string]: number;
            };
            /**
             * @description Of the last command in the log.
             * @default 0
             */
            seq: number;
            /** @default 0 */
            snapshotSeq: number;
            /**
             * @description Commands that ran out of order: 0.
             * @default 0
             */
            violations: number;
            /**
             * @description How long the oldest of them has waited.
             * @default 0
             */
            waitMs: number;
            /**
             * @description In the order of their numbers; empty: its owner does not tell.
             * @default []
             */
            workers: components["schemas"]["WorkerLoad"][];
        };
        /** ShardView */
        ShardView: {
            address: string;
            /** @description µs; it rises with each takeover. */
            epoch: number;
            leaseLeftMs: number;
            /** @description Server id; empty: nobody owns it, and its symbols wait. */
            owner: string;
            shard: number;
            status: components["schemas"]["ShardStatus"];
        };
        /**
         * SpotView
         * @description A lane among all.
         */
        SpotView: {
            lane: number;
            shard: number;
        };
        /** Status */
        Status: {
            pid: number;
            profile: string;
            roles: string[];
            startedAt: string;
            store: components["schemas"]["StoreStatus"];
            version: string;
        };
        /** StoreNode */
        StoreNode: {
            connected: boolean;
            inFlight: number;
            name: string;
            reconnects: number;
            timeouts: number;
            unknownOutcomes: number;
            waiting: number;
            whyDown: string;
        };
        /** StoreStatus */
        StoreStatus: {
            latencyMs: number;
            nodes: components["schemas"]["StoreNode"][];
            server: string;
            shape: string;
            /** @description Without its password. */
            url: string;
        };
        /**
         * Token
         * @description A token as it may be shown: without its secret.
         */
        Token: {
            createdAt: string;
            id: string;
            name: string;
            scopes: ("admin" | "gameserver" | "read" | "register")[];
            /** @default  */
            serverId: string;
            /** @default [] */
            types: string[];
            /** @default [] */
            worlds: string[];
        };
        /** TokenInput */
        TokenInput: {
            /** @description Who uses it; for people. */
            name: string;
            scopes: ("admin" | "gameserver" | "read" | "register")[];
            /**
             * @description It may act for this server only; empty: for every one. At most 128 bytes of UTF-8, no braces, spaces or control characters, no colon.
             * @default
             */
            serverId?: string;
            /**
             * @description It may register, beat and remove instances of these types only; empty: of all.
             * @default []
             */
            types?: string[];
            /**
             * @description It may report, consume, release and ask for players in these worlds only; empty: in all.
             * @default []
             */
            worlds?: string[];
        };
        /** TokenList */
        TokenList: {
            tokens: components["schemas"]["Token"][];
        };
        /** TypeNumbers */
        TypeNumbers: {
            accepting: number;
            /** @description Of those that have a limit; 0: none has. */
            capacity: number;
            load: number;
            total: number;
            type: string;
        };
        /**
         * WorkerLoad
         * @description What waits at one of the workers that share a shard: worker n has lanes n, n + workers, …
         */
        WorkerLoad: {
            /**
             * @description Commands that wait for their turn.
             * @default 0
             */
            depth: number;
            /**
             * @description Commands that it did not take, since its server was started.
             * @default 0
             */
            rejected: number;
            /**
             * @description How long the oldest of them has waited.
             * @default 0
             */
            waitMs: number;
        };
        /** WorldList */
        WorldList: {
            worlds: components["schemas"]["WorldView"][];
        };
        /**
         * WorldNumbers
         * @description One waiting room.
         */
        WorldNumbers: {
            /**
             * @description Who has a place and does not call just now; in none of the two above.
             * @default null
             */
            away: number | null;
            /** @default null */
            capacity: number | null;
            /** @default null */
            consumedTotal: number | null;
            /** @default null */
            enteredPerSecond: number | null;
            /**
             * @description Of whoever comes now.
             * @default null
             */
            etaSeconds: number | null;
            /** @default null */
            expiredTotal: number | null;
            /** @default null */
            free: number | null;
            /** @default null */
            held: number | null;
            /** @default null */
            inside: number | null;
            /** @default null */
            issuedPerSecond: number | null;
            /** @default null */
            issuedTotal: number | null;
            /** @default null */
            message: string | null;
            /** @default null */
            mode: string | null;
            /**
             * @description The same: who is there.
             * @default null
             */
            present: number | null;
            /** @default null */
            tickets: number | null;
            /**
             * @description Who stands in the line and calls.
             * @default null
             */
            waiting: number | null;
            world: string;
        };
        /**
         * WorldPatch
         * @description What is left out stays as it is; null takes a limit, a rate or a message away.
         */
        WorldPatch: {
            /** @default -1 */
            limit?: number | null;
            /** @default  */
            message?: string | null;
            /** @default null */
            mode?: ("auto" | "closing" | "hold" | "off" | "queue-all") | null;
            /**
             * @description ISO 8601; null opens it now.
             * @default
             */
            opensAt?: string | null;
            /** @default -1 */
            rate?: number | null;
            /**
             * @description Refuse if it is another one by now.
             * @default null
             */
            revision?: number | null;
        };
        /**
         * WorldView
         * @description A world as an operator sees it.
         */
        WorldView: {
            away: number;
            capacity: number;
            classes: components["schemas"]["ClassView"][];
            counters: {
                [key: string]: number;
            };
            /** @description SHA-256 of the seed by which places before the opening are drawn, known before anybody comes. */
            drawDigest: string;
            /** @description The seed itself, once the world is open: everybody can check their place. */
            drawSeed: string;
            free: number;
            held: number;
            inside: number;
            limit: number | null;
            message: string;
            /** @enum {unknown} */
            mode: "auto" | "closing" | "hold" | "off" | "queue-all";
            opensAt: string | null;
            /** @description Servers that report, and that discovery does not show as this world's: they count for nothing. */
            pending: string[];
            rate: number | null;
            revision: number;
            servers: components["schemas"]["ServerView"][];
            /** @description Service type of its servers in discovery. */
            serverType: string;
            tickets: number;
            waiting: number;
            world: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    start_hotfix_by_get: {
        parameters: {
            query?: {
                "nodes[]"?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HotfixReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    start_hotfix: {
        parameters: {
            query?: {
                "nodes[]"?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HotfixReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Status"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    enter_queue: {
        parameters: {
            query?: never;
            header?: {
                /** @description Of a backend that asks for its players, with scope gameserver; without it the address is limited. */
                "X-API-Token"?: string;
                /** @description Proof of the place: the `receipt` of the last answer. A browser sends its cookie. */
                "X-Queue-Receipt"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntryInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlaceReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    leave_queue: {
        parameters: {
            query: {
                userId: string;
                world?: string;
            };
            header?: {
                /** @description Of a backend that asks for its players, with scope gameserver; without it the address is limited. */
                "X-API-Token"?: string;
                /** @description Proof of the place: the `receipt` of the last answer. A browser sends its cookie. */
                "X-Queue-Receipt"?: string;
                /** @description The login service's signature, where there is no receipt yet. */
                "X-Queue-Signature"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    watch_place: {
        parameters: {
            query: {
                userId: string;
                world?: string;
            };
            header?: {
                /** @description Of a backend that asks for its players, with scope gameserver; without it the address is limited. */
                "X-API-Token"?: string;
                /** @description Proof of the place: the `receipt` of the last answer. A browser sends its cookie. */
                "X-Queue-Receipt"?: string;
                /** @description The login service's signature, where there is no receipt yet. */
                "X-Queue-Signature"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_place: {
        parameters: {
            query: {
                userId: string;
                world?: string;
            };
            header?: {
                /** @description Of a backend that asks for its players, with scope gameserver; without it the address is limited. */
                "X-API-Token"?: string;
                /** @description Proof of the place: the `receipt` of the last answer. A browser sends its cookie. */
                "X-Queue-Receipt"?: string;
                /** @description The login service's signature, where there is no receipt yet. */
                "X-Queue-Signature"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlaceReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    consume_ticket: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConsumeInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConsumeReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_audit_entries: {
        parameters: {
            query?: {
                action?: string;
                before?: string;
                limit?: number;
                name?: string;
                since?: string;
                target?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_audit_export: {
        parameters: {
            query?: {
                action?: string;
                name?: string;
                since?: string;
                target?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    create_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    remove_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_tokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    create_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenInput"];
            };
        };
        responses: {
            /** @description done */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewToken"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    revoke_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_holders: {
        parameters: {
            query?: {
                type?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HolderList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_held_users: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                type?: string;
            };
            header?: never;
            path: {
                serverId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HeldUsers"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_homes: {
        parameters: {
            query: {
                type?: string;
                userId: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HomeList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_home: {
        parameters: {
            query?: {
                type?: string;
            };
            header?: never;
            path: {
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Home"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    release_home: {
        parameters: {
            query?: {
                type?: string;
            };
            header?: never;
            path: {
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_home_history: {
        parameters: {
            query?: {
                type?: string;
            };
            header?: never;
            path: {
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HomeHistory"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_moves: {
        parameters: {
            query?: {
                type?: string;
            };
            header?: never;
            path: {
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MoveList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_drains: {
        parameters: {
            query?: {
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    start_drain: {
        parameters: {
            query?: {
                plan?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DrainInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrainReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_drain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    cancel_drain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    pause_drain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    report_drain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    resume_drain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    rollback_drain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    watch_events: {
        parameters: {
            query?: {
                scope?: ("audit" | "binding" | "discovery" | "drain" | "orders" | "overview" | "queue")[];
            };
            header?: {
                /** @description Of the last event seen: goes on from there, or says `gap` and goes on from now. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    check_liveness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    explain_selection: {
        parameters: {
            query: {
                group?: string;
                key: string;
                slowStartSeconds?: number;
                strategy?: "consistent_hash" | "hash_ring" | "bounded_load" | "rendezvous" | "round_robin" | "least_connections" | "random" | "two_choices" | "singleton";
                type: string;
                zone?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explained"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    preview_ring: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Preview"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_ring: {
        parameters: {
            query: {
                group?: string;
                points?: number;
                type: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ring"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    select_server: {
        parameters: {
            query: {
                group?: string;
                key: string;
                n?: number;
                slowStartSeconds?: number;
                strategy?: "consistent_hash" | "hash_ring" | "bounded_load" | "rendezvous" | "round_robin" | "least_connections" | "random" | "two_choices" | "singleton";
                type: string;
                zone?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Selected"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    select_servers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SelectInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SelectedList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_advice: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdviceView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    explain_id: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_order: {
        parameters: {
            query: {
                account: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_placement: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlacementView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_symbol: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                symbol: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlaceView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    move_symbol: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                symbol: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MoveInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlacedReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    unpin_symbol: {
        parameters: {
            query?: {
                expected?: number | null;
            };
            header?: never;
            path: {
                symbol: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlacedReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_shards: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShardList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    halt_symbol: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                symbol: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["HaltInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HaltReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    replay_symbol: {
        parameters: {
            query?: {
                shard?: number | null;
                to?: number;
            };
            header?: never;
            path: {
                symbol: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    resume_symbol: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                symbol: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HaltReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_overview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_worlds: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorldList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_world: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                world: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorldView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    update_world: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                world: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorldPatch"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorldView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    preview_world: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                world: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ForecastInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Forecast"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_person: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                userId: string;
                world: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PersonView"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    remove_from_queue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                userId: string;
                world: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    remove_server: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                serverId: string;
                world: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    release_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                serverId: string;
                world: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReleaseInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReleaseReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    report_users: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                serverId: string;
                world: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReportInput"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    check_readiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ready"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_health: {
        parameters: {
            query?: {
                group?: string;
                type?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthReport"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_instances: {
        parameters: {
            query?: {
                group?: string;
                label?: string[];
                type?: string;
                verify?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InstanceList"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    register_instance: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterInput"];
            };
        };
        responses: {
            /** @description done */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Registered"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_instance: {
        parameters: {
            query?: {
                verify?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InstanceDetail"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    remove_instance: {
        parameters: {
            query?: {
                cause?: "crashed" | "removed" | "terminated";
                group?: string;
                life?: string;
                type?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    send_heartbeat: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Beat"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BeatReply"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    override_instance: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Override"];
            };
        };
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InstanceDetail"];
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    list_prometheus_targets: {
        parameters: {
            query?: {
                group?: string;
                port?: string;
                type?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    get_prometheus_performance: {
        parameters: {
            query?: {
                group?: string;
                type?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
    watch_instances: {
        parameters: {
            query?: {
                group?: string;
                label?: string[];
                type?: string;
            };
            header?: {
                /** @description `<revision>-<revisionAt>` of the last change seen: goes on from there. One that does not fit begins with a snapshot. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description refused */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorReply"];
                };
            };
        };
    };
}
