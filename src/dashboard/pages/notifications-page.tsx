import type { NotificationModel } from '../../api/operation/notifications.js';
import { EVENT_TYPES } from '../../db/tables/notifications.js';
import { ActionForm, useCommands, useMay } from '../parts/action-form.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { Choice, ENVIRONMENT_CHOICES, Filters, FoundList, type ListProps, readList } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, companyCount, Environment, numberText, State, stateText, When } from '../parts/shown-values.js';

const PATH = '/notifications';
const STATUSES = ['pending', 'delivered', 'failed'].map((status) => [status, stateText(status)] as const);

export async function notificationsPage(request: PageRequest): Promise<PageContent> {
  const names = ['status', 'type', 'environment', 'company_id'];
  const found = await readList<NotificationModel>(request, PATH, names, { limit: 50 });
  return { title: 'Notifications', body: <Notifications {...found} /> };
}

function Notifications({ list, filters }: ListProps<NotificationModel>) {
  const may = useMay();
  const [first] = list.data;
  const test = useCommands(['notification.test', 'notifications.redeliver'], {});
  const again = useCommands(first ? ['notification.redeliver'] : [], { id: first?.id ?? '' });
  return (
    <>
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
      <Filters path={PATH}>
        <Choice name="status" label="Delivery" chosen={filters.status} options={STATUSES} />
        <Choice
          name="type"
          label="Event"
          chosen={filters.type}
          options={EVENT_TYPES.map((type) => [type, inWords(type)] as const)}
        />
        <Choice name="environment" label="Environment" chosen={filters.environment} options={ENVIRONMENT_CHOICES} />
      </Filters>
      <FoundList
        path={PATH}
        label="Notifications found"
        list={list}
        filters={filters}
        commands={[...test, ...again.map((command) => ({ ...command, label: 'Send again, here for the first of the list' }))]}
      >
        <DataTable
          caption="Notifications, newest first"
          columns={may('notification.redeliver') ? [...COLUMNS, AGAIN] : COLUMNS}
          rows={list.data}
          keyOf={({ id }) => id}
          empty={Object.keys(filters).length > 0 ? 'No notification matches.' : 'There is no notification yet.'}
        />
      </FoundList>
    </>
  );
}

const inWords = (type: string) => type.replaceAll('_', ' ');

const COLUMNS: readonly Column<NotificationModel>[] = [
  column('Event', ({ id, type, reason, resource }) => (
    <span id={`event-${id}`}>
      {inWords(type)}
      {(resource ?? reason) && <small class="why">{[resource, reason].filter(Boolean).join(', ')}</small>}
    </span>
  )),
  column('When', ({ occurred_at }) => <When at={occurred_at} />),
  column('Company', (notification) => <Companies {...notification} />),
  column('Environment', ({ environment }) => <Environment name={environment} />),
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
  column('Attempts', ({ attempts }) => numberText(attempts), { numeric: true }),
];

const AGAIN = column<NotificationModel>('Again', ({ id }) => (
  <ActionForm name="notification.redeliver" fields={{ id }} describedBy={`event-${id}`} />
));

/** The company of the notification, the number of its companies, or none for a test. */
function Companies({ environment, company_id, company_name, count }: NotificationModel) {
  if (company_id !== null) return <CompanyLink environment={environment} companyId={company_id} name={company_name} />;
  return count === undefined ? <span class="none">none</span> : <>{companyCount(count)}</>;
}
