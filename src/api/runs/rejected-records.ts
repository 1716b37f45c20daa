import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isCut, listRejectedRecords, type RejectedRecordRow } from '../../db/tables/rejected-records.js';
import { mayAct } from '../plumbing/caller.js';
import { CompanyName, companyFilterOf, namedPage } from '../plumbing/company-names.js';
import type { LargeListDependencies } from '../plumbing/large-responses.js';
import {
  CompanySearchFilters,
  Count,
  EnvironmentName,
  listQuery,
  pageOf,
  presentPage,
  ResourceName,
} from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const RejectedQuery = listQuery({
  ...CompanySearchFilters,
  resource: ResourceName.exactOptional(),
});

const RejectedRecord = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    company_name: CompanyName,
    resource: z.string(),
    run_id: z.string(),
    page: Count.describe('The page of the walk, counted from 0.'),
    position: Count.describe('The place within the page, counted from 0.'),
    reason: z.string().describe('docs/verification.md explains each reason.'),
    text: z
      .string()
      .describe(
        'The record as received; a long one is cut and ends with …. Bytes that are not UTF-8 are shown as U+FFFD. Empty for a viewer.',
      ),
    text_hidden: z.boolean().exactOptional().describe('True for a viewer, who is shown no values of records.'),
  })
  .meta({ id: 'RejectedRecord', description: 'A record that Muster could not keep.' });
export type RejectedRecordModel = z.output<typeof RejectedRecord>;

/** The least role that is shown values of records. */
const SHOWN_TO = 'operator';

const { viewer } = operationsOf('runs');

export function rejectedRecordRoutes({ db, largeResponses }: LargeListDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/rejected',
      viewer('listRejectedRecords', 'List the records that the newest walk of each list rejected', {
        description:
          'By environment, company and resource, then in the order received. Muster keeps at most 1,000 a walk; the run has their number.',
        querystring: RejectedQuery,
        response: { 200: pageOf(RejectedRecord) },
        problems: ['overloaded'],
      }),
      async ({ query, caller }, reply) => {
        const filter = await companyFilterOf(db, query);
        const page = await largeResponses.read(
          reply,
          () => listRejectedRecords(db, filter),
          ({ data }) => data.reduce((bytes, { text }) => bytes + text.length, 0),
        );
        return namedPage(db, presentPage(page, mayAct(caller, SHOWN_TO) ? presentRejectedRecord : withoutText));
      },
    );
  };
}

function withoutText(row: RejectedRecordRow): RejectedRecordModel {
  return { ...presentRejectedRecord(row), text: '', text_hidden: true };
}

function presentRejectedRecord(row: RejectedRecordRow): RejectedRecordModel {
  const { environment, companyId: company_id, resource, runId: run_id, page, position, reason } = row;
  const text = Buffer.from(row.text, 'base64');
  return {
    environment,
    company_id,
    resource,
    run_id,
    page,
    position,
    reason,
    text: `${text.toString('utf8')}${isCut(text) ? '…' : ''}`,
  };
}
