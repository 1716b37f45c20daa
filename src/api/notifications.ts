import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Database } from '../db/database.js';
import {
  listNotifications,
  type NotificationFilter,
  type NotificationRow,
  resetNotification,
} from '../db/tables/notifications.js';
import { audited } from './audit.js';
import { answers, IdParams, Notification, type NotificationModel, NotificationQuery, pageOf } from './models.js';

const tags = ['notifications'];

export function notificationRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/notifications',
      {
        schema: {
          tags,
          operationId: 'listNotifications',
          summary: 'List the notifications and what became of them, newest first',
          querystring: NotificationQuery,
          response: answers({ 200: pageOf(Notification) }),
        },
      },
      async ({ query: { company_id, ...filter } }) => {
        const asked = Object.entries({ ...filter, companyId: company_id }).filter(([, value]) => value !== undefined);
        const page = await listNotifications(db, Object.fromEntries(asked) as unknown as NotificationFilter);
        return { data: page.data.map(presentNotification), next_cursor: page.nextCursor ?? null };
      },
    );

    api.post(
      '/notifications/:id/redeliver',
      {
        schema: {
          tags,
          operationId: 'redeliverNotification',
          summary: 'Send a notification once more',
          description: 'With the same id and all its attempts, whatever became of it.',
          params: IdParams,
          response: answers({ 200: Notification }),
        },
      },
      async ({ params: { id } }) => {
        const entry = { action: 'notification.redeliver', details: { notification_id: id } } as const;
        return presentNotification(await audited(db, entry, () => resetNotification(db, { id })));
      },
    );
  };
}

function presentNotification(row: NotificationRow): NotificationModel {
  return {
    id: row.id,
    type: row.type,
    occurred_at: row.occurredAt.toISOString(),
    environment: row.environment,
    company_id: row.companyId,
    ...row.details,
    status: row.status,
    attempts: row.attempts,
    next_attempt_at: row.nextAttemptAt?.toISOString() ?? null,
    delivered_at: row.deliveredAt?.toISOString() ?? null,
    last_error: row.lastError,
  };
}
