import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { inTransaction } from '../../db/connection/transaction.js';
import { adoptInstallation, detachInstallation, STANDINGS } from '../../db/tables/installation.js';
import { recordDone } from '../plumbing/audit.js';
import { operationsOf } from '../plumbing/operations.js';

const Adoption = z.strictObject({
  feed: z
    .enum(['new', 'same'])
    .default('new')
    .describe('new: readers of the change feed must begin again. same: a planned move, in which no change was lost.'),
});
const Installation = z
  .object({ standing: z.enum(STANDINGS), feed: z.uuid().optional() })
  .meta({ id: 'Installation', description: 'Whether tokens are refreshed in this database.' });
export type InstallationModel = z.output<typeof Installation>;

interface InstallationDependencies {
  readonly db: Database;
  /** The value of the setting INSTALLATION. */
  readonly installation?: string;
}

const { admin } = operationsOf('operation');

/** With these calls, a person says whether a restored or copied database is the installation from now on, or a copy. */
export function installationRoutes({ db, installation: name }: InstallationDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.post(
      '/installation/adopt',
      admin('adoptInstallation', 'Say that this database is the installation from now on', {
        description:
          'For a backup that was restored, or a database that was moved: tokens are refreshed here from now on. No other Muster may go on with the database that it was before.',
        body: Adoption,
        response: { 200: Installation },
      }),
      async ({ caller: by, body: { feed } }) =>
        inTransaction(db, async (tx) => {
          const id = await adoptInstallation(tx, { name: name ?? null, keepsFeed: feed === 'same' });
          await recordDone(tx, { by, action: 'installation.adopt', details: { feed } });
          return { standing: 'ours' as const, feed: id };
        }),
    );

    api.post(
      '/installation/detach',
      admin('detachInstallation', 'Say that this database is a copy', {
        description:
          'Its tokens are deleted, and nothing is asked of the service from here. The installation that it was copied from goes on.',
        response: { 200: Installation },
      }),
      async ({ caller: by }) =>
        inTransaction(db, async (tx) => {
          await detachInstallation(tx);
          await recordDone(tx, { by, action: 'installation.detach' });
          return { standing: 'detached' as const };
        }),
    );
  };
}
