import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { rekeyList } from '../../mirror/rekey.js';
import { audited } from '../plumbing/audit.js';
import { CompanyParams, Count, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const Rekey = z.strictObject({ resource: ResourceName });
const Rekeyed = z.object({ resource: z.string(), deleted: Count });
export type RekeyedModel = z.output<typeof Rekeyed>;

const { admin } = operationsOf('companies');

/** Lets a list's records be kept under another member as their id. No walk decides that by itself. */
export function rekeyRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.post(
      '/companies/:environment/:company_id/rekey',
      admin('rekeyList', 'Give up the ids of a list', {
        description:
          'For a catalogue that names the records of a list by another member than before. The rows are marked deleted; the next sync takes the records in again under their new ids.',
        params: CompanyParams,
        body: Rekey,
        response: { 200: Rekeyed },
        problems: ['unknown_resource'],
      }),
      async ({ caller, params: company, body: { resource } }) => {
        const deleted = await audited(db, { by: caller, action: 'list.rekey', company, details: { resource } }, () =>
          rekeyList(db, { ...company, resource }),
        );
        return { resource, deleted };
      },
    );
  };
}
