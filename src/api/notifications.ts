import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../db/database.js';
import {
  EVENT_TYPES,
  listNotifications,
  NOTIFICATION_STATUSES,
  type NotificationRow,
  resetNotification,
} from '../db/tables/notifications.js';
import { audited } from './audit.js';
import {
  answers,
  CompanyId,
  Count,
  EnvironmentName,
  IdParams,
  listQuery,
  pageOf,
  presentPage,
  presentTime,
  Time,
} from './models.js';

export const EventTypeName = z.enum(EVENT_TYPES);
export const NotificationStatusName = z.enum(NOTIFICATION_STATUSES);

const NotificationQuery = listQuery({
  status: NotificationStatusName.exactOptional(),
  type: EventTypeName.exactOptional(),
  environment: EnvironmentName.exactOptional(),
  company_id: CompanyId.exactOptional(),
});

const Notification = z
  .object({
    id: z.string().meta({ description: 'The same at every attempt: Muster-Event-Id.' }),
    type: EventTypeName,
    occurred_at: Time,
    environment: z.string(),
    company_id: z.string(),
    reason: z.string().optional(),
    run_id: z.string().optional(),
    resource: z.string().optional(),
    count: Count.optional(),
    status: NotificationStatusName,
    attempts: Count,
    next_attempt_at: Time.nullable(),
    delivered_at: Time.nullable(),
    last_error: z
      .object({ code: z.string(), status: z.int().optional(), cause: z.string().optional() })
      .readonly()
      .nullable()
      .meta({ description: 'Why the last attempt was not taken: docs/notifications.md lists the codes.' }),
  })
  .meta({ id: 'Notification', description: 'A state change that was, or is to be, told to the webhook.' });
export type NotificationModel = z.output<typeof Notification>;

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
      async ({ query: { company_id, ...query } }) => {
        const filter = { ...query, ...(company_id && { companyId: company_id }) };
        return presentPage(await listNotifications(db, filter), presentNotification);
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
    next_attempt_at: presentTime(row.nextAttemptAt),
    delivered_at: presentTime(row.deliveredAt),
    last_error: row.lastError,
  };
}
