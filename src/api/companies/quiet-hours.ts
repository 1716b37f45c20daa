import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { companyNotFound } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { NO_QUIET_HOURS, quietWindowsText, readQuietWindows } from '../../core/quiet-hours.js';
import type { Connections } from '../../oauth/connections.js';
import { changeQuietHours } from '../../runs/quiet-hours.js';
import { audited } from '../plumbing/audit.js';
import { CompanyParams } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { Company, type CompanyPresentation, presentCompanies } from './company-model.js';

interface QuietHoursRouteDependencies extends CompanyPresentation {
  readonly connections: Connections;
}

const OwnQuietHours = z.strictObject({
  quiet_hours: z
    .string()
    .max(1_000)
    .nullable()
    .describe(
      'Windows such as `07:00-09:00,12:00-13:00` in SYNC_TIMEZONE; `none`: no quiet hours; null: those of the installation.',
    ),
});

const { operator } = operationsOf('companies');

/** With this call a person gives a company quiet hours of its own, in place of those of the installation. */
export function quietHoursRoute(deps: QuietHoursRouteDependencies): FastifyPluginAsyncZod {
  const { db, connections } = deps;
  return async (api) => {
    api.post(
      '/companies/:environment/:company_id/quiet-hours',
      operator('setQuietHours', 'Set the quiet hours of a company', {
        description:
          'In quiet hours Muster asks nothing of the service by itself for the company. A run that is under way stops at its next request, and goes on from its checkpoint at their end. A run or a refresh that waits for the end of the former quiet hours waits for the end of the new ones, or goes on at once.',
        params: CompanyParams,
        body: OwnQuietHours,
        response: { 200: Company },
        problems: ['company_not_found', 'invalid_quiet_hours'],
      }),
      async ({ params: company, body: { quiet_hours: text }, caller }) => {
        const quietHours = text === null ? null : readOwn(text);
        const details = { quiet_hours: quietHours ?? 'default' };
        await audited(db, { by: caller, action: 'company.quiet_hours', company, details }, () =>
          changeQuietHours(db, { company, quietHours }, deps),
        );
        const connection = await connections.find(company);
        if (!connection) throw companyNotFound(company);
        return (await presentCompanies(deps, [connection]))[0]!;
      },
    );
  };
}

/** The text as it is stored. Throws `invalid_quiet_hours`. */
function readOwn(text: string): string {
  if (text.trim() === NO_QUIET_HOURS) return NO_QUIET_HOURS;
  const read = readQuietWindows(text);
  if ('windows' in read) return quietWindowsText(read.windows);
  throw new MusterError(
    'invalid_quiet_hours',
    `These quiet hours cannot be used: ${read.problems.join('; ')}. For example: 07:00-09:00,12:00-13:00`,
  );
}
