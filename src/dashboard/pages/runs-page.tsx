import type { ComponentChildren } from 'preact';
import { failureLine, failureOf } from '../../api/runs/run-failure.js';
import type { RunModel } from '../../api/runs/run-model.js';
import { counts } from '../parts/columns.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import { Field } from '../parts/fields.js';
import {
  COMPANY as COMPANY_SEARCH,
  choice,
  ENVIRONMENT,
  HIDDEN,
  listAddress,
  listPage,
  ONE_COMPANY,
  RESOURCE,
} from '../parts/list-page.js';
import { progressText } from '../parts/run-progress.js';
import { ShownStatus } from '../parts/shown-status.js';
import {
  CompanyLink,
  durationText,
  Environment,
  Link,
  numberText,
  TRIGGER_NAMES,
  triggerText,
  useExact,
  When,
} from '../parts/shown-values.js';
import { useView } from '../parts/view.js';

const PATH = '/runs';

export const runsPage = listPage<RunModel>({
  path: PATH,
  title: 'Runs',
  limit: 50,
  filters: {
    company: COMPANY_SEARCH,
    company_id: ONE_COMPANY,
    status: choice('Status', ['queued', 'running', 'succeeded', 'failed', 'cancelled']),
    trigger: choice('Why', TRIGGER_NAMES, { textOf: triggerText }),
    environment: ENVIRONMENT,
    resource: RESOURCE,
    day: (name, { day }) => (
      <Field label="Day">
        <input type="date" name={name} value={day} />
      </Field>
    ),
    since: (_name, filters) => <Between filters={filters} />,
    until: HIDDEN,
  },
  label: 'Runs found',
  Items: ({ list, filters }) => (
    <RunTable
      rows={list.data}
      caption="Runs, newest first"
      empty={Object.keys(filters).length > 0 ? 'No run matches.' : 'No run yet: the first one comes with the first company.'}
    />
  ),
});

/** The range of request times. A link of the overview sets it, so it has hidden fields, which keep it while other filters change. */
function Between({ filters }: { readonly filters: Readonly<Record<string, string>> }) {
  const exact = useExact();
  const { since, until, ...others } = filters;
  if (since === undefined && until === undefined) return null;
  return (
    <p class="between">
      {since !== undefined && <input type="hidden" name="since" value={since} />}
      {until !== undefined && <input type="hidden" name="until" value={until} />}
      {since === undefined ? 'Requested' : `Requested from ${exact(new Date(since).toISOString())}`}
      {until === undefined ? '' : ` until ${exact(new Date(until).toISOString())}`}.{' '}
      <Link to={listAddress(PATH, others)}>At any time</Link>
    </p>
  );
}

interface RunTableProps {
  readonly rows: readonly RunModel[];
  readonly caption: string;
  readonly empty: ComponentChildren;
  /** Leaves out the columns that name the company. */
  readonly isOfOneCompany?: boolean;
}

export function RunTable({ rows, caption, empty, isOfOneCompany = false }: RunTableProps) {
  return (
    <DataTable
      caption={caption}
      columns={isOfOneCompany ? [RUN, ...OF_EVERY_RUN] : [RUN, COMPANY, ...OF_EVERY_RUN]}
      rows={rows}
      keyOf={({ id }) => id}
      empty={empty}
    />
  );
}

const RUN: Column<RunModel> = column('Requested', ({ id, created_at }) => (
  <Link to={`/runs/${id}`}>
    <When at={created_at} />
  </Link>
));

const COMPANY: Column<RunModel> = column('Company', ({ environment, company_id, company_name, company_removed }) => (
  <>
    {company_removed ? (
      <span class="company">
        <span class="id">{company_id}</span> removed
      </span>
    ) : (
      <CompanyLink environment={environment} companyId={company_id} name={company_name} isBrief />
    )}{' '}
    <Environment name={environment} />
  </>
));

const OF_EVERY_RUN: readonly Column<RunModel>[] = [
  column('Status', (run) => <Status run={run} />),
  column(
    'Why',
    ({ trigger, kind, mode }) =>
      triggerText(trigger) + (kind === 'sync' && mode === 'full' && trigger !== 'onboarding' ? ', full' : ''),
  ),
  column(
    'Proved',
    ({ kind, walks }) =>
      kind === 'verify' ? '–' : `${numberText(walks.filter(({ verified }) => verified).length)} of ${numberText(walks.length)}`,
    { numeric: true },
  ),
  counts('Changes', ({ walks }) => walks.reduce((sum, { inserted, updated, deleted }) => sum + inserted + updated + deleted, 0)),
  column('Took', (run) => <Began run={run} />, { numeric: true }),
];

/** The most characters of the service's sentence in a table; the page of the run has all of it. */
const MOST_SAID = 100;

const WAIT_MS = 60_000;

/** How a run ended or how far it is, and the first list that failed, with the reason. */
function Status({ run }: { readonly run: RunModel }) {
  const failure = failureOf(run);
  const said = failure?.service_says;
  const progress = progressText(run);
  return (
    <span class="details">
      <ShownStatus of={run} />
      {progress && <small class="why">{progress}</small>}
      {run.waits_until && (
        <small class="why">
          starts at their end <When at={run.waits_until} isBrief />
        </small>
      )}
      {run.retry_at && !run.waits_until && (
        <small class="why">
          tries again <When at={run.retry_at} isBrief />
        </small>
      )}
      {failure && <small class="why">{failureLine(failure)}</small>}
      {said && (
        <small class="why">
          <q>{said.length > MOST_SAID ? `${[...said].slice(0, MOST_SAID).join('')}…` : said}</q>
        </small>
      )}
    </span>
  );
}

/** How long a run took. When it began is said where it waited for that. */
function Began({ run }: { readonly run: RunModel }) {
  const exact = useExact();
  const { created_at, started_at } = run;
  const waited = started_at === null ? 0 : Date.parse(started_at) - Date.parse(created_at);
  return (
    <span>
      <Took run={run} />
      {started_at !== null && waited > WAIT_MS && <small class="why">from {exact(started_at)}</small>}
    </span>
  );
}

export function Took({ run: { started_at, finished_at } }: { readonly run: Pick<RunModel, 'started_at' | 'finished_at'> }) {
  const { now } = useView();
  if (started_at === null) return <span class="none">not begun</span>;
  return <>{durationText((finished_at === null ? now : Date.parse(finished_at)) - Date.parse(started_at))}</>;
}
