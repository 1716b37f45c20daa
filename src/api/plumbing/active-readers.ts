import type { Clock } from '../../core/clock.js';
import type { Database } from '../../db/connection/database.js';
import { findActiveTokenIds } from '../../db/tables/named-tokens.js';
import { findActiveSessionIds } from '../../db/tables/sessions.js';
import type { Logger } from '../../observability/logger.js';
import type { Caller } from './caller.js';

/** The interval at which ended tokens and sessions are looked for. */
const ASK_MS = 1_000;

/** Ids of named tokens, or of sessions. */
type Ids = readonly string[];

interface ActiveReadersDependencies {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly logger: Logger;
  /** The ids among them that are still active. */
  readonly findActive: { readonly tokens: (ids: Ids) => Promise<Ids>; readonly sessions: (ids: Ids) => Promise<Ids> };
}

interface Reader {
  readonly caller: Caller;
  readonly end: () => void;
}

/**
 * Ends long responses, such as event streams, once the token of their reader is deleted or expires, or the session ends. One query asks about all
 * readers. While the database does not answer, no reader is ended.
 */
export class ActiveReaders {
  readonly #deps: ActiveReadersDependencies;
  readonly #readers = new Set<Reader>();
  #asking: AbortController | undefined;

  constructor(deps: ActiveReadersDependencies) {
    this.#deps = deps;
  }

  /** `end` is called once, when the caller may read no more. Returns a function for when the answer has ended by itself; it may be called twice. */
  add(caller: Caller, end: () => void): () => void {
    // The token of the administrator lasts as long as the process.
    if (caller.tokenId === undefined && caller.sessionId === undefined) return () => undefined;
    const reader = { caller, end };
    this.#readers.add(reader);
    if (!this.#asking) {
      this.#asking = new AbortController();
      void this.#ask(this.#asking.signal);
    }
    return () => this.#remove(reader);
  }

  #remove(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#asking?.abort();
    this.#asking = undefined;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#deps;
    for (;;) {
      await clock.sleep(ASK_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        for (const reader of await this.#ended([...this.#readers])) {
          this.#remove(reader);
          reader.end();
        }
      } catch (error) {
        logger.debug({ err: error }, 'Whether the readers of event streams may go on could not be read');
      }
    }
  }

  async #ended(readers: readonly Reader[]): Promise<readonly Reader[]> {
    const { tokens, sessions } = this.#deps.findActive;
    const living = new Set([
      ...(await ofAny(tokens, readers.map(tokenOf))),
      ...(await ofAny(
        sessions,
        readers.map(({ caller }) => caller.sessionId),
      )),
    ]);
    return readers.filter((reader) => !living.has((reader.caller.sessionId ?? tokenOf(reader))!));
  }
}

export function findActiveIn(db: Database): ActiveReadersDependencies['findActive'] {
  return { tokens: (ids) => findActiveTokenIds(db, ids), sessions: (ids) => findActiveSessionIds(db, ids) };
}

/** A session ends no later than its token, so a caller with both is known by the session. */
function tokenOf({ caller: { sessionId, tokenId } }: Reader): string | undefined {
  return sessionId === undefined ? tokenId : undefined;
}

async function ofAny(find: (ids: Ids) => Promise<Ids>, ids: readonly (string | undefined)[]): Promise<Ids> {
  const given = [...new Set(ids.filter((id) => id !== undefined))];
  return given.length > 0 ? find(given) : [];
}
