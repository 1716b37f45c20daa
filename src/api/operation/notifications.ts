import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import {
  EVENT_TYPES,
  insertTestNotification,
  listNotifications,
  NOTIFICATION_STATUSES,
  type NotificationRow,
  resetNotification,
  resetUndelivered,
} from '../../db/tables/notifications.js';
import { audited } from '../plumbing/audit.js';
import { CompanyName, companyFilterOf, namedPage } from '../plumbing/company-names.js';
import {
  CompanySearchFilters,
  Count,
  EnvironmentName,
  IdParams,
  listQuery,
  pageOf,
  presentPage,
  presentTime,
  Time,
} from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

export const EventTypeName = z.enum(EVENT_TYPES);
export const NotificationStatusName = z.enum(NOTIFICATION_STATUSES);

const NotificationQuery = listQuery({
  status: NotificationStatusName.exactOptional(),
  type: EventTypeName.exactOptional(),
  ...CompanySearchFilters,
});

const Notification = z
  .object({
    id: z.string().describe('The same at every attempt: Muster-Event-Id.'),
    type: EventTypeName,
    occurred_at: Time,
    environment: z.string(),
    company_id: z.string().nullable().describe('null where it is of many companies, and then has an issue_id, and of a test.'),
    company_name: CompanyName,
    reason: z.string().optional(),
    run_id: z.string().optional(),
    resource: z.string().optional(),
    count: Count.optional(),
    issue_id: z.string().optional(),
    issue_status: z.enum(['ongoing', 'resolved']).optional(),
    cause: z.string().optional().describe('The cause of the issue.'),
    columns_added: Count.optional(),
    columns_with_misfits: Count.optional(),
    status: NotificationStatusName,
    attempts: Count,
    next_attempt_at: Time.nullable(),
    delivered_at: Time.nullable(),
    last_error: z
      .object({ code: z.string(), status: z.int().optional(), cause: z.string().optional() })
      .readonly()
      .nullable()
      .describe('Why the last attempt was not taken: docs/notifications.md lists the codes.'),
  })
  .meta({ id: 'Notification', description: 'A state change that was, or will be, sent to the webhook.' });
export type NotificationModel = z.output<typeof Notification>;

/** A request without a body concerns the test environment, whose events wake no person. */
const SendTest = z.strictObject({ environment: EnvironmentName.default('test') }).nullish();

const RedeliverAll = z.strictObject({ environment: EnvironmentName.exactOptional() }).nullish();
const Redelivered = z
  .object({ queued: Count.describe('How many are sent once more.') })
  .meta({ id: 'RedeliveredNotifications', description: 'What was not delivered is due now.' });
export type RedeliveredModel = z.output<typeof Redelivered>;

export interface NotificationRoutesDependencies {
  readonly db: Database;
  /** The webhook that this process is set to notify, and so are the workers of the same environment. */
  readonly webhook?: object | undefined;
}

const { viewer, operator } = operationsOf('notifications');

export function notificationRoutes({ db, webhook }: NotificationRoutesDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/notifications',
      viewer('listNotifications', 'List the notifications and what became of them, newest first', {
        querystring: NotificationQuery,
        response: { 200: pageOf(Notification) },
      }),
      async ({ query }) =>
        namedPage(db, presentPage(await listNotifications(db, await companyFilterOf(db, query)), presentNotification)),
    );

    api.post(
      '/notifications/test',
      operator('testNotifications', 'Send a test to the webhook', {
        description:
          'An event of the type `test`, which goes the way of every other: signed, by a worker, with all its attempts. It is of the environment test unless said.',
        body: SendTest,
        response: { 201: Notification },
        problems: ['webhook_not_configured'],
      }),
      async ({ caller, body }, reply) => {
        const environment = body?.environment ?? 'test';
        const entry = { by: caller, action: 'notification.test', environment } as const;
        const row = await audited(db, entry, async () => {
          if (!webhook) throw noWebhook();
          return insertTestNotification(db, { environment });
        });
        return reply.code(201).send(presentNotification(row));
      },
    );

    api.post(
      '/notifications/redeliver',
      operator('redeliverNotifications', 'Send all notifications once more that were not delivered', {
        description:
          'Notifications that were given up or wait for another attempt, each with the same id and all its attempts; except notifications that were not tried for a day.',
        body: RedeliverAll,
        response: { 202: Redelivered },
        problems: ['webhook_not_configured'],
      }),
      async ({ caller, body }, reply) => {
        const environment = body?.environment;
        const entry = { by: caller, action: 'notifications.redeliver', ...(environment && { environment }) } as const;
        const queued = await audited(db, entry, async () => {
          if (!webhook) throw noWebhook();
          return resetUndelivered(db, { environment });
        });
        return reply.code(202).send({ queued });
      },
    );

    api.post(
      '/notifications/:id/redeliver',
      operator('redeliverNotification', 'Send a notification once more', {
        description: 'With the same id and all its attempts, whatever became of it.',
        params: IdParams,
        response: { 200: Notification },
        problems: ['notification_not_found'],
      }),
      async ({ caller, params: { id } }) => {
        const entry = { by: caller, action: 'notification.redeliver', details: { notification_id: id } } as const;
        return presentNotification(
          await audited(
            db,
            entry,
            () => resetNotification(db, { id }),
            ({ environment, companyId }) => (companyId === null ? undefined : { environment, companyId }),
          ),
        );
      },
    );
  };
}

function noWebhook(): MusterError {
  return new MusterError(
    'webhook_not_configured',
    'No webhook is set, so no notification is sent: set NOTIFY_WEBHOOK_URL and NOTIFY_WEBHOOK_SECRET for the API and the workers, and start them again.',
  );
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
