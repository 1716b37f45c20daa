import type { ComponentChildren } from 'preact';
import type { RunModel } from '../../api/runs/run-model.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import {
  Choice,
  ENVIRONMENT_CHOICES,
  Filters,
  FoundList,
  type ListProps,
  listAddress,
  readList,
  Search,
} from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import {
  CompanyLink,
  durationText,
  Environment,
  exactTime,
  numberText,
  State,
  stateText,
  triggerText,
  When,
} from '../parts/shown-values.js';
import { useAddress, useView } from '../parts/view.js';

const PATH = '/runs';
const STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'].map((status) => [status, stateText(status)] as const);

export async function runsPage(request: PageRequest): Promise<PageContent> {
  const names = ['company_id', 'status', 'environment', 'since', 'until'];
  const found = await readList<RunModel>(request, PATH, names, { limit: 50 });
  return { title: 'Runs', body: <Runs {...found} /> };
}

function Runs({ list, filters }: ListProps<RunModel>) {
  return (
    <>
      <h1>Runs</h1>
      <Filters path={PATH}>
        <Search label="Company id" name="company_id" value={filters.company_id} maxLength={40} />
        <Choice name="status" label="Status" chosen={filters.status} options={STATUSES} />
        <Choice name="environment" label="Environment" chosen={filters.environment} options={ENVIRONMENT_CHOICES} />
        <Between filters={filters} />
      </Filters>
      <FoundList path={PATH} label="Runs found" list={list} filters={filters}>
        <RunTable
          rows={list.data}
          caption="Runs, newest first"
          empty={Object.keys(filters).length > 0 ? 'No run matches.' : 'No run yet: the first one comes with the first company.'}
        />
      </FoundList>
    </>
  );
}

/** The range of request times. A link of the overview sets it, so it has hidden fields, which keep it while other filters change. */
function Between({ filters }: { readonly filters: Readonly<Record<string, string>> }) {
  const address = useAddress();
  const { since, until, ...others } = filters;
  if (since === undefined && until === undefined) return null;
  return (
    <p class="between">
      {since !== undefined && <input type="hidden" name="since" value={since} />}
      {until !== undefined && <input type="hidden" name="until" value={until} />}
      {since === undefined ? 'Requested' : `Requested from ${exactTime(new Date(since).toISOString())}`}
      {until === undefined ? '' : ` until ${exactTime(new Date(until).toISOString())}`}.{' '}
      <a href={address(listAddress(PATH, others))}>At any time</a>
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
      columns={isOfOneCompany ? OF_EVERY_RUN : [OF_EVERY_RUN[0]!, ...OF_COMPANY, ...OF_EVERY_RUN.slice(1)]}
      rows={rows}
      keyOf={({ id }) => id}
      empty={empty}
    />
  );
}

const OF_COMPANY: readonly Column<RunModel>[] = [
  column('Company', ({ environment, company_id, company_name }) => (
    <CompanyLink environment={environment} companyId={company_id} name={company_name} />
  )),
  column('Environment', ({ environment }) => <Environment name={environment} />),
];

const OF_EVERY_RUN: readonly Column<RunModel>[] = [
  column('Run', ({ id, created_at }) => <RunLink id={id} createdAt={created_at} />),
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
    {
      numeric: true,
    },
  ),
  column(
    'Changes',
    ({ walks }) => numberText(walks.reduce((sum, { inserted, updated, deleted }) => sum + inserted + updated + deleted, 0)),
    { numeric: true },
  ),
  column('Took', (run) => <Took run={run} />, { numeric: true }),
];

/** Lets a long code wrap after each of its words. */
function breakable(code: string): ComponentChildren {
  return code.split(/(?<=_)/).flatMap((word) => [word, <wbr key={word} />]);
}

function RunLink({ id, createdAt }: { readonly id: string; readonly createdAt: string }) {
  const address = useAddress();
  return (
    <a href={address(`/runs/${id}`)}>
      <When at={createdAt} />
    </a>
  );
}

export function Took({ run: { started_at, finished_at } }: { readonly run: Pick<RunModel, 'started_at' | 'finished_at'> }) {
  const { now } = useView();
  if (started_at === null) return <span class="none">not begun</span>;
  return <>{durationText((finished_at === null ? now : Date.parse(finished_at)) - Date.parse(started_at))}</>;
}
