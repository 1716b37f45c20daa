import type { Database } from '../../db/connection/database.js';
import type { FailedRefresh } from '../../db/tables/connections.js';
import type { IssueRow } from '../../db/tables/issues.js';
import { findTokenRefusals } from '../../db/tables/put-off-tokens.js';
import { answerText } from '../../oauth/token-response.js';

/** The responses of the token endpoint to the companies of a token issue: "400 access_denied (to 2), 403 (to 1)". Undefined for other issues, and if there was no response. */
export async function tokenResponsesOf(db: Database, { cause, status, environment }: IssueRow): Promise<string | undefined> {
  if ((cause !== 'token_put_off' && cause !== 'reauthorization_required') || status !== 'ongoing') return undefined;
  const refusals = await findTokenRefusals(db, { environment, mustAuthorize: cause === 'reauthorization_required' });
  if (refusals.length === 0) return undefined;
  return refusals.map((refusal) => `${answerText(refusal)} (to ${refusal.companies})`).join(', ');
}

/** The response to one company. Undefined if its last refresh was granted. */
export function describeTokenRefusal({ refreshFailure, lastStatus, lastError }: FailedRefresh): string | undefined {
  if (lastStatus !== null) return `The token endpoint answered ${answerText({ status: lastStatus, error: lastError })}.`;
  return refreshFailure === null ? undefined : `The token endpoint gave no readable answer (${refreshFailure}).`;
}
