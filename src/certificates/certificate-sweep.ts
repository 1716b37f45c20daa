import type { Clock } from '../core/clock.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction } from '../db/connection/transaction.js';
import { addSigningKey, findUnsigned, hasUnsigned, type UnsignedCertificate, writeSigned } from '../db/tables/certificates.js';
import { SweepLock } from '../db/tables/sweep-lock.js';
import type { Logger } from '../observability/logger.js';
import { digestOf, readCertificate, type Signer } from './certificate.js';
import { Statement } from './statement.js';

interface CertificateDependencies {
  readonly db: Database;
  readonly signer: Signer;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

/** Certificates signed by one transaction, a limit that keeps transactions short. */
const SIGNED_AT_ONCE = 500;

/**
 * Each call signs the verified walks that have ended since the last one. The transaction that ended a walk wrote its facts, so that each verified walk
 * has one certificate, even if a worker dies. Each batch is committed as a whole and follows the one before: a list's certificates never fork.
 */
export function certificateSweep(deps: CertificateDependencies): () => Promise<void> {
  const lock = new SweepLock('certificates', deps.clock, deps.logger);
  return async () => {
    if (!(await hasUnsigned(deps.db))) return;
    while ((await signPiece(deps, lock)) === SIGNED_AT_ONCE);
  };
}

/** Returns the number of signed certificates; 0 if another process is signing. */
function signPiece({ db, signer, logger }: CertificateDependencies, lock: SweepLock): Promise<number> {
  return inTransaction(db, async (tx) => {
    if (!(await lock.take(tx))) return 0;
    const unsigned = await findUnsigned(tx, { limit: SIGNED_AT_ONCE });
    if (unsigned.length === 0) return 0;
    const newest = new Map<string, string>();
    const signed: { id: bigint; jws: string }[] = [];
    for (const certificate of unsigned) {
      const { id, environment, companyId, resource } = certificate;
      const list = `${environment} ${companyId} ${resource}`;
      const jws = await signer.sign(statementOf(certificate, newest.get(list) ?? certificate.previous));
      newest.set(list, jws);
      signed.push({ id, jws });
    }
    await writeSigned(tx, signed);
    const { kid } = signer.publicKey;
    if (await addSigningKey(tx, signer.publicKey)) logger.info({ kid }, 'certificates are signed with a new key from now on');
    return signed.length;
  });
}

/** Parsing puts the members into the order of the model. */
function statementOf({ environment, companyId, resource, facts, seq }: UnsignedCertificate, previous: string | null): Statement {
  const [started_at, finished_at, verified_at] = [facts.started_at, facts.finished_at, facts.verified_at].map(timeOf);
  const after = previous === null ? 0 : readCertificate(previous).statement.feed.through;
  return Statement.parse({
    environment,
    company_id: companyId,
    resource,
    ...facts,
    started_at,
    finished_at,
    verified_at,
    feed: { after, through: Number(seq) },
    previous: previous === null ? null : digestOf(previous),
  });
}

function timeOf(text: string): string {
  return new Date(text).toISOString();
}
