import type { Environment } from '../core/company.js';
import type { Database } from '../db/connection/database.js';
import { isPassingTrouble } from '../db/connection/sql-state.js';
import type { ClaimedRun } from '../db/tables/runs.js';
import type { ApiClient } from '../http/api-client.js';
import type { Requester } from '../http/budget/request-budget.js';
import { textOf } from '../http/http-client.js';
import { recordPathOf, type TokenSource } from '../http/token-source.js';
import { writeCompanyRecord } from '../mirror/company-record.js';
import type { Logger } from '../observability/logger.js';
import { endsTheRun } from './run-failures.js';

interface RecordDependencies {
  readonly db: Database;
  readonly apiOf: (environment: Environment) => Pick<ApiClient, 'request'>;
}

interface RecordRequest {
  readonly run: ClaimedRun;
  readonly tokens: TokenSource;
  readonly requester: Requester;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Mirrors the company's own record. The lists matter more: a service that does not give the record fails no run. */
export async function readCompanyRecord(
  { db, apiOf }: RecordDependencies,
  { run, tokens, requester, signal, log }: RecordRequest,
): Promise<void> {
  const { company } = run;
  try {
    const path = recordPathOf(company);
    const record = await apiOf(company.environment).request({
      method: 'GET',
      path,
      tokens,
      signal,
      requester,
      takesRefusals: true,
    });
    await writeCompanyRecord(db, { run, company }, textOf(record));
  } catch (error) {
    if (signal.aborted || endsTheRun(error) || isPassingTrouble(error)) throw error;
    log.warn({ err: error }, 'the company record could not be mirrored');
  }
}

/** An API whose responses resolve only once the company's record is mirrored. */
export function withRecord(
  api: Pick<ApiClient, 'request' | 'baseUrl'>,
  requester: Requester,
  record: Promise<void>,
): Pick<ApiClient, 'request' | 'baseUrl'> {
  return {
    baseUrl: api.baseUrl,
    request: async (request) => (await Promise.all([api.request({ ...request, requester }), record]))[0],
  };
}
