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

/** Certificates that one transaction signs, so that none is long. */
const SIGNED_AT_ONCE = 500;

/**
 * Each call signs what verified walks have ended since. The facts were written by the step that ended the walk, so that each verified walk has one
 * certificate, whenever a worker dies. What is signed is committed as a whole, behind what was signed before: a list's certificates never fork.
 */
export function certificateSweep(deps: CertificateDependencies): () => Promise<void> {
  const lock = new SweepLock('certificates', deps.clock, deps.logger);
  return async () => {
    if (!(await hasUnsigned(deps.db))) return;
    while ((await signPiece(deps, lock)) === SIGNED_AT_ONCE);
  };
}

/** Returns how many were signed; 0 where another process signs. */
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
    if (await addSigningKey(tx, signer.publicKey)) logger.info({ kid }, 'Certificates are signed with a new key from now on');
    return signed.length;
  });
}

/** Its members have the order of the model. */
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
