import { type CompanyKey, keyText } from '../core/company.js';
import type { Secret } from '../core/secret.js';
import type { Database } from '../db/connection/database.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { recordTaken } from '../db/tables/refused-tokens.js';
import { findToken } from '../db/tables/tokens.js';
import type { TokenEvidence } from '../http/token-source.js';

/** The evidence for one company. */
interface Known {
  /** The address that accepted a token last. */
  witness?: string;
  /** The token that only single lists refuse. */
  refusedAlone?: Secret | undefined;
  /** The row says that a token was refused everywhere. */
  isRefused?: boolean;
}

/**
 * The API's responses to each company's tokens that this process has seen. They are stored in the database only if a token was refused, by all requests or by
 * the company's own record.
 */
export class KnownEvidence {
  readonly #db: Database;
  readonly #known = new Map<string, Known>();

  constructor(db: Database) {
    this.#db = db;
  }

  of(company: CompanyKey): TokenEvidence {
    const known = this.#of(company);
    // A failure is repaired with the next accepted token.
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
