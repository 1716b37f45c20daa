import { type CompanyKey, logFieldsOf } from '../core/company.js';
import type { Secret } from '../core/secret.js';
import { inTransaction, type Transaction } from '../db/transaction.js';
import { recordAuthorizationRestored } from '../notifications/events.js';
import type { KeeperParts } from './refresh-attempt.js';
import { refreshAfterSeconds } from './refresh-schedule.js';
import type { Grant } from './token-answer.js';
import { untilCommitted } from './until-committed.js';

/** A grant with which a company can be kept. */
export type LastingGrant = Grant & { readonly refreshToken: Secret };

/** `created` is false when the company was there and got a newer authorization. */
interface Admitted {
  readonly created: boolean;
}

/** Takes companies in, and keeps what was granted for those that cannot be taken in: no pair that we received is lost. */
export class Admission {
  readonly #parts: KeeperParts;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  /**
   * Stores a grant: the connection, its token and the company's row appear together. A company that is there gets the
   * newer authorization. Undefined, and nothing stored, when `mayCommit`, asked last in the same transaction, says no.
   */
  admit(company: CompanyKey, grant: LastingGrant): Promise<Admitted>;
  admit(
    company: CompanyKey,
    grant: LastingGrant,
    mayCommit: (tx: Transaction) => Promise<boolean>,
  ): Promise<Admitted | undefined>;
  async admit(
    company: CompanyKey,
    grant: LastingGrant,
    mayCommit?: (tx: Transaction) => Promise<boolean>,
  ): Promise<Admitted | undefined> {
    const { db, vault, refreshMarginSeconds, random = Math.random, logger } = this.#parts;
    const sealed = vault.seal(company, {
      ...grant,
      refreshAfterSeconds: refreshAfterSeconds(grant.lifetimeSeconds, refreshMarginSeconds, random()),
    });
    const work = async (tx: Transaction) => {
      const created = await connect(tx, company);
      await vault.store(tx, company, sealed);
      await recordAuthorizationRestored(tx, company);
      if (mayCommit && !(await mayCommit(tx))) throw new NotAdmitted();
      return { created };
    };
    const admitted = await untilCommitted(() => inTransaction(db, work).catch(undefinedIfNotAdmitted));
    if (admitted) logger.info({ ...logFieldsOf(company), ...admitted }, 'company onboarded');
    return admitted;
  }

  /** Keeps a refresh token for a company that it cannot be used for now: the service has used up whatever was before it. */
  async quarantine(company: CompanyKey, refreshToken: Secret): Promise<void> {
    const { db, vault } = this.#parts;
    await untilCommitted(() => vault.quarantine(db.prisma, company, refreshToken));
  }
}

/** Rolls the transaction back. */
class NotAdmitted extends Error {}

function undefinedIfNotAdmitted(error: unknown): undefined {
  if (error instanceof NotAdmitted) return undefined;
  throw error;
}

async function connect(tx: Transaction, { environment, companyId }: CompanyKey): Promise<boolean> {
  const [row] = await tx.$queryRaw<{ created: boolean }[]>`
    INSERT INTO muster.connections AS c (environment, company_id) VALUES (${environment}, ${companyId}::uuid)
    ON CONFLICT (environment, company_id) DO UPDATE SET reauthorization_reason = NULL,
      status_changed_at = CASE WHEN c.reauthorization_reason IS NULL THEN c.status_changed_at ELSE now() END
    RETURNING xmax = 0 AS created`;
  await tx.$executeRaw`
    INSERT INTO mirror.companies (environment, company_id) VALUES (${environment}, ${companyId}::uuid)
    ON CONFLICT (environment, company_id) DO UPDATE SET deleted_at = NULL`;
  return row?.created ?? false;
}
