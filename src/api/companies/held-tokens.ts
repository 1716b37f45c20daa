import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ENVIRONMENTS } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import { inTransaction } from '../../db/connection/transaction.js';
import { closeBreakers } from '../../db/tables/refresh-breakers.js';
import { recordDone } from '../plumbing/audit.js';
import { operationsOf } from '../plumbing/operations.js';

const Release = z.strictObject({
  environment: z.enum(ENVIRONMENTS).optional().describe('Absent: both environments.'),
});
const Released = z
  .object({ released: z.array(z.enum(ENVIRONMENTS)).describe('The environments whose tokens were held.') })
  .meta({ id: 'ReleasedTokens', description: 'The environments in which Muster refreshes tokens again.' });
export type ReleasedModel = z.output<typeof Released>;

const { operator } = operationsOf('operation');

/** With this call a person says that the held tokens are good, although the service refused others. */
export function heldTokenRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.post(
      '/held-tokens/release',
      operator('releaseHeldTokens', 'Refresh held tokens again', {
        description:
          'For the issue tokens_held, once its cause is gone. Muster refreshes the tokens one at a time until ten in a row were granted; if the service refuses three again, they are held again.',
        body: Release,
        response: { 200: Released },
      }),
      async ({ caller: by, body: { environment } }) =>
        inTransaction(db, async (tx) => {
          const released = await closeBreakers(tx, { environment });
          await recordDone(tx, { by, action: 'held_tokens.release', ...(environment && { environment }), details: { released } });
          return { released };
        }),
    );
  };
}
