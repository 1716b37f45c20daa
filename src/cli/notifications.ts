import { type Command, Option } from 'commander';
import { EventTypeName, type NotificationModel, NotificationStatusName } from '../api/notifications.js';
import { openAdminClient } from './admin-client.js';
import { companyOption, environmentOption, type OperatorOptions, operatorCommand, parseCount } from './operator-command.js';
import { type Columns, print, time } from './table.js';

interface NotificationsOptions extends OperatorOptions {
  readonly environment?: string;
  readonly company?: string;
  readonly status?: string;
  readonly type?: string;
  readonly limit: number;
}

export function registerNotifications(program: Command): void {
  const notifications = program.command('notifications').description('list notifications, and send one again');

  operatorCommand(notifications, 'list', 'list them, newest first (what `muster notifications` does by itself)', {
    isDefault: true,
  })
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(new Option('--status <status>', 'only those of this status').choices(NotificationStatusName.options))
    .addOption(new Option('--type <type>', 'only those of this type').choices(EventTypeName.options))
    .addOption(new Option('--limit <count>', 'how many at most, up to 500').argParser(parseCount).default(20))
    .action(async ({ company, environment, status, type, limit, ...options }: NotificationsOptions) => {
      const query = { environment, company_id: company, status, type, limit };
      const page = await openAdminClient(options).get<{ data: NotificationModel[] }>('/api/notifications', query);
      print(page.data, COLUMNS, options);
    });

  operatorCommand(notifications, 'redeliver', 'send a notification once more')
    .argument('<id>', 'id of the notification')
    .action(async (id: string, options: OperatorOptions) => {
      const path = `/api/notifications/${encodeURIComponent(id)}/redeliver`;
      print([await openAdminClient(options).post<NotificationModel>(path)], COLUMNS, options);
    });
}

const COLUMNS: Columns<NotificationModel> = {
  NOTIFICATION: ({ id }) => id,
  OCCURRED: ({ occurred_at }) => time(occurred_at),
  TYPE: ({ type }) => type,
  ENVIRONMENT: ({ environment }) => environment,
  COMPANY: ({ company_id }) => company_id,
  STATUS: ({ status }) => status,
  ATTEMPTS: ({ attempts }) => attempts,
  NEXT: ({ next_attempt_at }) => time(next_attempt_at),
  'LAST ERROR': ({ last_error }) =>
    last_error && [last_error.code, last_error.status, last_error.cause].filter(Boolean).join(' '),
};
