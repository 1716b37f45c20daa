import { type CompanyKey, keyText } from '../core/company.js';
import type { Secret } from '../core/secret.js';
import type { Database } from '../db/connection/database.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { recordTaken } from '../db/tables/refused-tokens.js';
import { findToken } from '../db/tables/tokens.js';
import type { TokenEvidence } from '../http/token-source.js';

/** The evidence of one company. */
interface Known {
  /** Address that took a token last. */
  witness?: string;
  /** The token that single lists alone refuse. */
  refusedAlone?: Secret | undefined;
  /** The row says that a token was refused everywhere. */
  isRefused?: boolean;
}

/**
 * The answers of the API to each company's tokens, as far as this process has seen them. The database is told of it only where a token was refused: by all that
 * was asked, or by the company's own record alone.
 */
export class KnownEvidence {
  readonly #db: Database;
  readonly #known = new Map<string, Known>();

  constructor(db: Database) {
    this.#db = db;
  }

  of(company: CompanyKey): TokenEvidence {
    const known = this.#of(company);
    // Where that fails, it is tried again with the next token that is taken.
    const keep = async (witness: string | undefined) => {
      known.isRefused = false;
      await recordTaken(this.#db, { company, witness: witness ?? null }).catch(() => this.recordRefused(company));
    };
    return {
      taken: (witness) => {
        if (witness !== undefined) known.witness = witness;
        return known.isRefused ? keep(known.witness) : undefined;
      },
      witness: async () => known.witness ?? (await withDatabaseErrors(findToken(this.#db.prisma, company))).witness ?? undefined,
      keep,
      get isRefused() {
        return known.isRefused === true;
      },
      recordRefusedAlone: (token) => (known.refusedAlone = token),
    };
  }

  recordRefused(company: CompanyKey): void {
    this.#of(company).isRefused = true;
  }

  isRefusedAlone(company: CompanyKey, token: Secret): boolean {
    return this.#of(company).refusedAlone?.reveal() === token.reveal();
  }

  #of(company: CompanyKey): Known {
    const name = keyText(company);
    const known = this.#known.get(name) ?? {};
    this.#known.set(name, known);
    return known;
  }
}
