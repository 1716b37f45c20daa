import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ENVIRONMENTS } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import { inTransaction } from '../../db/connection/transaction.js';
import { closeBreakers } from '../../db/tables/refresh-breakers.js';
import { recordDone } from '../plumbing/audit.js';
import { answers } from '../plumbing/models.js';

const Release = z.strictObject({
  environment: z.enum(ENVIRONMENTS).optional().meta({ description: 'Absent: of both.' }),
});
const Released = z
  .object({ released: z.array(z.enum(ENVIRONMENTS)).meta({ description: 'The environments whose tokens were held.' }) })
  .meta({ id: 'ReleasedTokens', description: 'Whose tokens are refreshed again.' });
export type ReleasedModel = z.output<typeof Released>;

/** A person says with this call that tokens, which are held since the service refused others, are good. */
export function heldTokenRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.post(
      '/held-tokens/release',
      {
        config: { role: 'operator' },
        schema: {
          tags: ['operation'],
          operationId: 'releaseHeldTokens',
          summary: 'Refresh tokens again that are held',
          description:
            'For the issue tokens_held, once its cause is gone. The tokens are refreshed one at a time until ten in a row were granted; where the service refuses three again, they are held again.',
          body: Release,
          response: answers({ 200: Released }),
        },
      },
      async ({ caller: by, body: { environment } }) =>
        inTransaction(db, async (tx) => {
          const released = await closeBreakers(tx, { environment });
          await recordDone(tx, { by, action: 'held_tokens.release', ...(environment && { environment }), details: { released } });
          return { released };
        }),
    );
  };
}
