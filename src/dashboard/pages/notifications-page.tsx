import type { NotificationModel } from '../../api/operation/notifications.js';
import { EVENT_TYPES } from '../../db/tables/notifications.js';
import { ActionForm, useCommands, useMay } from '../parts/action-form.js';
import { counts, ENVIRONMENT as ENVIRONMENT_COLUMN } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import { COMPANY, choice, ENVIRONMENT, FoundTable, type ListProps, listPage, ONE_COMPANY } from '../parts/list-page.js';
import { CompanyLink, companyCount, State, When } from '../parts/shown-values.js';
import { useHere } from '../parts/view.js';

const inWords = (type: string) => type.replaceAll('_', ' ');

export const notificationsPage = listPage<NotificationModel>({
  path: '/notifications',
  title: 'Notifications',
  limit: 50,
  Head: () => (
    <div class="head">
      <div>
        <h1>Notifications</h1>
        <p class="lead">Events sent to the webhook, and their delivery.</p>
      </div>
      <div class="actions">
        <ActionForm name="notifications.redeliver" fields={{}} />
        <ActionForm name="notification.test" fields={{}} />
      </div>
    </div>
  ),
  filters: {
    status: choice('Delivery', ['pending', 'delivered', 'failed']),
    type: choice('Event', EVENT_TYPES, { textOf: inWords }),
    environment: ENVIRONMENT,
    company: COMPANY,
    company_id: ONE_COMPANY,
  },
  label: 'Notifications found',
  Items: Notifications,
  useFurtherCommands: ({
    list: {
      data: [first],
    },
  }) => [
    ...useCommands(['notification.test', 'notifications.redeliver'], {}),
    ...useCommands(first ? ['notification.redeliver'] : [], { id: first?.id ?? '' }).map((command) => ({
      ...command,
      label: 'Send again, here for the first of the list',
    })),
  ],
});

function Notifications(found: ListProps<NotificationModel>) {
  const may = useMay();
  return (
    <FoundTable
      {...found}
      caption="Notifications, newest first"
      columns={may('notification.redeliver') ? [...COLUMNS, AGAIN] : COLUMNS}
      empty={['No notification matches.', 'There is no notification yet.']}
    />
  );
}

const COLUMNS: readonly Column<NotificationModel>[] = [
  column('Event', ({ id, type, reason, resource }) => (
    <span id={`event-${id}`}>
      {inWords(type)}
      {(resource ?? reason) && <small class="why">{[resource, reason].filter(Boolean).join(', ')}</small>}
    </span>
  )),
  column('When', ({ occurred_at }) => <When at={occurred_at} />),
  column('Company', (notification) => <Companies {...notification} />),
  ENVIRONMENT_COLUMN,
  column('Delivery', ({ status, last_error, next_attempt_at }) => (
    <>
      <State of={status} />
      {last_error && status !== 'delivered' && (
        <small class="why">{[last_error.code, last_error.status, last_error.cause].filter(Boolean).join(' ')}</small>
      )}
      {status === 'pending' && next_attempt_at && (
        <small>
          {' '}
          next <When at={next_attempt_at} />
        </small>
      )}
    </>
  )),
  counts('Attempts', ({ attempts }) => attempts),
];

const AGAIN = column<NotificationModel>('Again', ({ id }) => <Again id={id} />);

function Again({ id }: { readonly id: string }) {
  return <ActionForm name="notification.redeliver" fields={{ id }} back={useHere()} describedBy={`event-${id}`} />;
}

/** The company of the notification, the number of its companies, or none for a test. */
function Companies({ environment, company_id, company_name, count }: NotificationModel) {
  if (company_id !== null) return <CompanyLink environment={environment} companyId={company_id} name={company_name} />;
  return count === undefined ? <span class="none">none</span> : <>{companyCount(count)}</>;
}
