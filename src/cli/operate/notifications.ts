import { type Command, Option } from 'commander';
import {
  EventTypeName,
  type NotificationModel,
  NotificationStatusName,
  type RedeliveredModel,
} from '../../api/operation/notifications.js';
import { COMPANY, type Columns, members, print, spare, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import {
  companyOption,
  environmentOption,
  idCommand,
  type ListOptions,
  limitOption,
  listCommand,
  operatorCommand,
} from './operator-command.js';

export function registerNotifications(program: Command): void {
  const notifications = program.command('notifications').description('list notifications, send one again, or send a test');
  const status = new Option('--status <status>', 'only notifications with this status').choices(NotificationStatusName.options);
  const type = new Option('--type <type>', 'only notifications of this type').choices(EventTypeName.options);
  const filters = [environmentOption(), companyOption(), status, type, limitOption(500, 20)];
  listCommand(notifications, 'list notifications, newest first', filters, { path: '/api/notifications', columns: COLUMNS });
  idCommand(notifications, 'redeliver', 'send a notification once more', async (client, id, options) =>
    print([await client.post<NotificationModel>(`/api/notifications/${id}/redeliver`)], COLUMNS, options),
  );
  operatorCommand(notifications, 'redeliver-all', 'send all undelivered notifications once more')
    .addOption(environmentOption())
    .action(async ({ environment, ...options }: ListOptions) => {
      const redelivered = await openAdminClient(options).post<RedeliveredModel>('/api/notifications/redeliver', { environment });
      print([redelivered], { 'SENT AGAIN': ({ queued }) => String(queued) }, options);
    });
  operatorCommand(notifications, 'test', 'send a test to the webhook; the list shows its outcome')
    .addOption(environmentOption().default('test'))
    .action(async ({ environment, ...options }: ListOptions) =>
      print(
        [await openAdminClient(options).post<NotificationModel>('/api/notifications/test', { environment })],
        COLUMNS,
        options,
      ),
    );
}

const COLUMNS: Columns<NotificationModel> = {
  NOTIFICATION: ({ id }) => id,
  OCCURRED: ({ occurred_at }) => time(occurred_at),
  ...members('type'),
  ...COMPANY,
  ...members('status'),
  ...spare({
    ATTEMPTS: ({ attempts }: NotificationModel) => attempts,
    NEXT: ({ next_attempt_at }: NotificationModel) => time(next_attempt_at),
  }),
  'LAST ERROR': ({ last_error }) =>
    last_error && [last_error.code, last_error.status, last_error.cause].filter(Boolean).join(' '),
};
