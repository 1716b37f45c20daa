import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Database } from '../db/database.js';
import { audited } from './audit.js';
import { answers, IdParams, Notification, NotificationQuery, pageOf } from './models.js';
import type { NotificationsPort } from './ports.js';

export interface NotificationRoutesDependencies {
  readonly db: Database;
  readonly notifications: NotificationsPort;
}

const tags = ['notifications'];

export function notificationRoutes({ db, notifications }: NotificationRoutesDependencies): FastifyPluginAsyncZod {
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
        const page = await notifications.list({ ...filter, companyId: company_id });
        return { data: [...page.data], next_cursor: page.nextCursor ?? null };
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
      ({ params: { id } }) =>
        audited(db, { action: 'notification.redeliver', details: { notification_id: id } }, () => notifications.redeliver(id)),
    );
  };
}
