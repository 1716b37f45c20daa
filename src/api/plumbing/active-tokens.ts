import type { Clock } from '../../core/clock.js';
import type { Database } from '../../db/connection/database.js';
import { withDatabaseErrors } from '../../db/connection/sql-state.js';
import { type ActiveToken, findActiveTokens, markUse } from '../../db/tables/named-tokens.js';
import type { Caller } from './caller.js';

/** A right token is remembered for so long, even if another process deletes it or it expires. */
const KEEP_MS = 1_000;

interface Batch {
  readonly hashes: Set<string>;
  readonly answer: Promise<ReadonlyMap<string, Caller>>;
}

/**
 * Looks named tokens up by their hashes. One query at a time asks for all tokens that have come up since the last one, so that a flood of wrong tokens
 * takes one connection at most. Only right tokens are remembered.
 */
export class ActiveTokens {
  readonly #deps: { readonly db: Database; readonly clock: Pick<Clock, 'monotonic'> };
  #known = new Map<string, { readonly caller: Caller; readonly until: number }>();
  #next: Batch | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: { readonly db: Database; readonly clock: Pick<Clock, 'monotonic'> }) {
    this.#deps = deps;
  }

  /** Throws `database_unavailable` where the database does not answer. */
  async find(hash: string): Promise<Caller | undefined> {
    const known = this.#known.get(hash);
    if (known && this.#deps.clock.monotonic() < known.until) return known.caller;
    this.#next ??= this.#openBatch();
    this.#next.hashes.add(hash);
    return (await this.#next.answer).get(hash);
  }

  /** A token was deleted: forgets all tokens, including the result of a running query. */
  forget(): void {
    this.#known = new Map();
  }

  #openBatch(): Batch {
    const hashes = new Set<string>();
    const answer = this.#last.then(() => {
      this.#next = undefined;
      return this.#ask([...hashes]);
    });
    this.#last = answer.catch(() => undefined);
    return { hashes, answer };
  }

  async #ask(hashes: readonly string[]): Promise<ReadonlyMap<string, Caller>> {
    const known = this.#known;
    // The time counts from before the query: a token may be deleted while the query runs.
    const until = this.#deps.clock.monotonic() + KEEP_MS;
    const living = await withDatabaseErrors(findActiveTokens(this.#deps.db, hashes));
    const unmarked = living.filter(({ isMarked }) => !isMarked).map(({ id }) => id);
    // A right token is accepted even if its use cannot be recorded.
    await markUse(this.#deps.db, unmarked).catch(() => undefined);
    const callers = new Map(living.map((token) => [token.tokenHash, callerOf(token)]));
    for (const hash of hashes) known.delete(hash);
    for (const [hash, caller] of callers) known.set(hash, { caller, until });
    return callers;
  }
}

function callerOf({ id, name, role }: ActiveToken): Caller {
  return { name, role, tokenId: id };
}
