import type { ComponentChildren } from 'preact';
import type { RunModel } from '../../api/runs/run-model.js';
import { COMPANY, counts, ENVIRONMENT as ENVIRONMENT_COLUMN } from '../parts/columns.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import { COMPANY_ID, choice, ENVIRONMENT, HIDDEN, listAddress, listPage } from '../parts/list-page.js';
import { durationText, Link, numberText, State, triggerText, useExact, When } from '../parts/shown-values.js';
import { useView } from '../parts/view.js';

const PATH = '/runs';

export const runsPage = listPage<RunModel>({
  path: PATH,
  title: 'Runs',
  limit: 50,
  filters: {
    company_id: COMPANY_ID,
    status: choice('Status', ['queued', 'running', 'succeeded', 'failed', 'cancelled']),
    environment: ENVIRONMENT,
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
      columns={isOfOneCompany ? [RUN, ...OF_EVERY_RUN] : [RUN, COMPANY, ENVIRONMENT_COLUMN, ...OF_EVERY_RUN]}
      rows={rows}
      keyOf={({ id }) => id}
      empty={empty}
    />
  );
}

const RUN: Column<RunModel> = column('Run', ({ id, created_at }) => (
  <Link to={`/runs/${id}`}>
    <When at={created_at} />
  </Link>
));

const OF_EVERY_RUN: readonly Column<RunModel>[] = [
  column('Status', (run) => (
    <>
      <State of={run.status} />
      {run.error && <small class="why">{breakable(run.error.code)}</small>}
    </>
  )),
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
  column('Took', (run) => <Took run={run} />, { numeric: true }),
];

/** Lets a long code wrap after each of its words. */
function breakable(code: string): ComponentChildren {
  return code.split(/(?<=_)/).flatMap((word) => [word, <wbr key={word} />]);
}

export function Took({ run: { started_at, finished_at } }: { readonly run: Pick<RunModel, 'started_at' | 'finished_at'> }) {
  const { now } = useView();
  if (started_at === null) return <span class="none">not begun</span>;
  return <>{durationText((finished_at === null ? now : Date.parse(finished_at)) - Date.parse(started_at))}</>;
}
