import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { MusterError } from '../core/errors.js';
import { pageCursor, readCursor } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import { audited } from './audit.js';
import { answers, Hold, HoldQuery, IdParams, pageOf } from './models.js';
import type { HoldsPort } from './ports.js';

const tags = ['holds'];

export function holdRoutes({ db, holds }: { readonly db: Database; readonly holds: HoldsPort }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/holds',
      {
        schema: {
          tags,
          operationId: 'listHolds',
          summary: 'List the held deletions, newest first',
          querystring: HoldQuery,
          response: answers({ 200: pageOf(Hold) }),
        },
      },
      async ({ query: { status, environment, limit, cursor } }) => {
        const before = cursor === undefined ? undefined : BigInt(readCursor(cursor, /^\d{1,18}$/));
        const rows = await db.prisma.hold.findMany({
          where: {
            ...(status && { status }),
            ...(environment && { environment }),
            ...(before !== undefined && { seq: { lt: before } }),
          },
          orderBy: { seq: 'desc' },
          take: limit + 1,
        });
        const page = rows.slice(0, limit);
        const last = page.at(-1);
        return { data: page.map(present), next_cursor: rows.length > limit && last ? pageCursor(String(last.seq)) : null };
      },
    );

    for (const verb of ['approve', 'reject'] as const) {
      api.post(
        `/holds/:id/${verb}`,
        {
          schema: {
            tags,
            operationId: `${verb}Hold`,
            summary: verb === 'approve' ? 'Delete what was held back' : 'Keep what was held back',
            ...(verb === 'approve' && { description: 'Deletes only what the newest verified walk lacked.' }),
            params: IdParams,
            response: answers({ 200: Hold }),
          },
        },
        async ({ params: { id } }) => {
          const hold = await db.prisma.hold.findUnique({ where: { id }, select: { environment: true, companyId: true } });
          const details = { hold_id: id, environment: hold?.environment, company_id: hold?.companyId };
          await audited(db, { action: `hold.${verb}`, details }, () => holds[verb](id));
          return present(await find(id));
        },
      );
    }
  };

  async function find(id: string) {
    const hold = await db.prisma.hold.findUnique({ where: { id } });
    if (!hold) throw new MusterError('hold_not_found', `There is no hold ${id}: GET /api/holds lists them.`);
    return hold;
  }
}

type HoldRow = Awaited<ReturnType<Database['prisma']['hold']['findUniqueOrThrow']>>;

function present({
  id,
  environment,
  companyId,
  resource,
  runId,
  count,
  living,
  sample,
  status,
  openedAt,
}: HoldRow): z.output<typeof Hold> {
  return {
    id,
    environment,
    company_id: companyId,
    resource,
    run_id: runId,
    count,
    living,
    sample,
    status: status as z.output<typeof Hold>['status'],
    opened_at: openedAt.toISOString(),
  };
}
