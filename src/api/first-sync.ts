import type { FastifyBaseLogger } from 'fastify';
import type { CompanyKey } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { RunsPort } from './ports.js';

/**
 * Asks for the sync of a company that has just been authorized; false when there is none now. The token is stored by
 * then: whatever keeps the sync from starting must not look like a refused authorization.
 */
export async function requestFirstSync(
  runs: RunsPort,
  company: CompanyKey,
  created: boolean,
  log: FastifyBaseLogger,
): Promise<boolean> {
  try {
    await runs.request({ company, trigger: created ? 'onboarding' : 'reauthorization' });
    return true;
  } catch (error) {
    if (!isMusterError(error, 'company_paused'))
      log.error({ err: error }, 'The first sync could not be asked for; the schedule will');
    return false;
  }
}
