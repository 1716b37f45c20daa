import { digest } from '../core/secret.js';
import { inTransaction } from '../db/connection/transaction.js';
import { lockConnection } from '../db/tables/connections.js';
import { deleteSuccessors, findSuccessor } from '../db/tables/quarantined-tokens.js';
import { replaceToken, type StoredToken } from '../db/tables/tokens.js';
import type { Dependencies } from './grant-store.js';

/**
 * Moves the successor of this token from quarantine to the company's row, if an earlier refresh was answered but could not be stored there.
 * Returns whether it did; the token is then due at once. It looks only if an attempt has no outcome, which is rare.
 */
export async function adoptSuccessor({ db, vault, connections }: Dependencies, state: StoredToken): Promise<boolean> {
  const { company, isUnanswered } = state;
  if (!isUnanswered) return false;
  const successorOf = digest(vault.openRefresh(state).reveal());
  const successor = await findSuccessor(db.prisma, { environment: company.environment, successorOf });
  if (successor?.companyId !== company.companyId) return false;
  return inTransaction(db, async (tx) => {
    if (!(await lockConnection(tx, company))) return false;
    const refreshToken = vault.openRefresh({ company, refreshToken: successor.refreshToken });
    const pair = vault.seal(company, { accessToken: undefined, refreshToken, lifetimeSeconds: 0, refreshAfterSeconds: 0 });
    if ((await replaceToken(tx, { spent: state, pair })) === undefined) return false;
    await deleteSuccessors(tx, { environment: company.environment, successorOf });
    await connections.regain(company, tx);
    return true;
  });
}
