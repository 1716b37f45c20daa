import type { BudgetModel } from '../../api/operation/budget.js';
import type { QueueModel } from '../../api/operation/queue.js';
import type { RunModel } from '../../api/runs/run-model.js';
import { adviceFor } from '../../core/advice.js';
import { AsCommands, get } from '../parts/action-form.js';
import { counts, ENVIRONMENT } from '../parts/columns.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import type { ListResponse } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { durationText, Link, numberText } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { RunTable } from './runs-page.js';

const LIMIT = 25;

export async function queuePage({ ask }: PageRequest): Promise<PageContent> {
  const runsThat = (status: string) => ask<ListResponse<RunModel>>(`/api/runs?status=${status}&limit=${LIMIT}`);
  const [queues, running, queued, budget] = await Promise.all([
    // The rest of the page is useful even if the queue does not answer.
    ask<{ data: readonly QueueModel[] }>('/api/queue').catch(() => undefined),
    runsThat('running'),
    runsThat('queued'),
    ask<{ data: readonly BudgetModel[] }>('/api/budget'),
  ]);
  return { title: 'Queue', body: <Queue queues={queues?.data} running={running} queued={queued} budget={budget.data} /> };
}

interface QueueProps {
  /** Undefined: the queue does not answer. */
  readonly queues: readonly QueueModel[] | undefined;
  readonly running: ListResponse<RunModel>;
  readonly queued: ListResponse<RunModel>;
  readonly budget: readonly BudgetModel[];
}

function Queue({ queues, running, queued, budget }: QueueProps) {
  const address = useAddress();
  return (
    <div id="queue" hx-get={address('/queue')} hx-trigger="every 10s" hx-select="#queue" hx-swap="outerHTML">
      <h1>Queue</h1>
      <p class="lead">Jobs only wake workers up. The state of runs is below, whatever the queue holds.</p>
      {queues ? (
        <DataTable
          caption="The jobs of each queue"
          columns={QUEUES}
          rows={queues}
          keyOf={({ queue, environment }) => `${queue} ${environment}`}
          empty="There is no queue yet: a worker creates it."
        />
      ) : (
        <p class="notice bad" role="alert">
          The queue does not answer. {adviceFor('queue_unavailable')}
        </p>
      )}
      <h2>Running</h2>
      <RunTable rows={running.data} caption="Runs that a worker has" empty="No worker has a run." />
      <More list={running} status="running" />
      <h2>Waiting</h2>
      <RunTable rows={queued.data} caption="Runs that wait for a worker, or to retry" empty="No run waits." />
      <More list={queued} status="queued" />
      <h2>Request budget</h2>
      <BudgetTable rows={budget} />
      <AsCommands
        commands={[
          get('The queues', '/api/queue'),
          get('Running', '/api/runs?status=running'),
          get('Waiting', '/api/runs?status=queued'),
          get('Request budget', '/api/budget'),
        ]}
      />
    </div>
  );
}

const QUEUES: readonly Column<QueueModel>[] = [
  column('Queue', ({ queue }) => <b>{queue}</b>),
  counts('Waiting', ({ waiting }) => waiting),
  column('For', ({ oldest_waiting_seconds: seconds }) => (seconds === null ? '' : durationText(seconds * 1_000)), {
    numeric: true,
  }),
  counts('Active', ({ active }) => active),
  counts('Put off', ({ delayed }) => delayed),
  counts('Failed in a day', ({ failed }) => failed),
  column('Repeats', ({ repeatable }) => (
    <small class="details">
      {repeatable.map(({ name, every_seconds }) => `${name} each ${durationText(every_seconds * 1_000)}`).join(', ')}
    </small>
  )),
];

function More({ list, status }: { readonly list: ListResponse<RunModel>; readonly status: string }) {
  return list.next_cursor === null ? null : (
    <p>
      <Link to={`/runs?status=${status}`}>All of them</Link>
    </p>
  );
}

export function BudgetTable({ rows }: { readonly rows: readonly BudgetModel[] }) {
  return (
    <DataTable
      caption="The requests of all workers to each environment's API"
      rows={rows}
      keyOf={({ environment }) => environment}
      empty="No environment of the service is configured."
      columns={BUDGET}
    />
  );
}

const BUDGET: readonly Column<BudgetModel>[] = [
  ENVIRONMENT,
  column(
    'Limit',
    ({ limit_per_second: limit, source }) => (limit === null ? 'none yet' : `${numberText(limit)} a second, ${source}`),
    { numeric: true },
  ),
  column('Concurrent', ({ in_flight_limit: limit }) => (limit === null ? 'not known' : numberText(limit)), { numeric: true }),
  counts('Requests in the last minute', ({ used_last_minute }) => used_last_minute),
  counts('Refused', ({ refused_last_minute }) => refused_last_minute),
];
