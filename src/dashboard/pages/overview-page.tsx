import type { BudgetModel } from '../../api/operation/budget.js';
import type { IssueModel } from '../../api/operation/issues.js';
import type { NightModel } from '../../api/operation/nights.js';
import type { OverviewModel } from '../../api/operation/overview.js';
import { AsCommands, get } from '../parts/action-form.js';
import { IssueCard } from '../parts/issue-card.js';
import type { PageContent } from '../parts/layout.js';
import type { ListResponse } from '../parts/list-page.js';
import { NIGHTS_SHOWN, Nights } from '../parts/night-calendar.js';
import type { PageRequest } from '../parts/page-request.js';
import { durationText, Link, numberText, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { BudgetTable } from './queue-page.js';

const NIGHTS = `/api/nights?days=${NIGHTS_SHOWN}` as const;

export async function overviewPage({ ask }: PageRequest): Promise<PageContent> {
  const [overview, issues, nights, budget] = await Promise.all([
    ask<OverviewModel>('/api/overview'),
    ask<ListResponse<IssueModel>>('/api/issues?status=ongoing'),
    ask<{ data: readonly NightModel[] }>(NIGHTS),
    ask<{ data: readonly BudgetModel[] }>('/api/budget'),
  ]);
  return { title: 'Overview', body: <Overview overview={overview} issues={issues} nights={nights.data} budget={budget.data} /> };
}

interface OverviewProps {
  readonly overview: OverviewModel;
  readonly issues: ListResponse<IssueModel>;
  readonly nights: readonly NightModel[];
  readonly budget: readonly BudgetModel[];
}

function Overview({ overview, issues, nights, budget }: OverviewProps) {
  const address = useAddress();
  const { companies, lists, runs, last_night: night, holds_open, workers, oldest_verified_at } = overview;
  return (
    <div id="overview" hx-get={address('/')} hx-trigger="every 15s" hx-select="#overview" hx-swap="outerMorph">
      <h1>Overview</h1>
      <Verdict overview={overview} />
      {issues.data.map((issue) => (
        <IssueCard key={issue.id} issue={issue} />
      ))}
      <ul class="figures">
        <Figure to="/companies" count={companies.active} name="active companies" />
        <Figure
          to="/companies?status=reauthorization_required"
          count={companies.reauthorization_required}
          name="must authorize"
          isBad
        />
        <Figure to="/companies?status=paused" count={companies.paused} name="paused" />
        <Figure to="/companies" count={lists.late} name="late lists" isBad />
        <Figure to="/runs?status=failed" count={night.failed} name="failed last night" isBad />
        <Figure to="/holds" count={holds_open} name="open holds" isBad />
        <Figure to="/runs?status=running" count={runs.running} name="running" />
        <Figure to="/queue" count={runs.queued} name="queued" note={waitText(overview.oldest_waiting_seconds)} />
        <Figure to="/queue" count={workers} name="workers" isBad={workers === 0} />
      </ul>
      <p class="hint">
        The oldest proof is from <When at={oldest_verified_at} none="no time yet" />.
      </p>
      <Nights nights={nights} />
      <h2>Request budget</h2>
      <BudgetTable rows={budget} />
      <AsCommands
        commands={[
          get('This overview', '/api/overview'),
          get('The nights', NIGHTS),
          get('The problems', '/api/issues?status=ongoing'),
        ]}
      />
    </div>
  );
}

function waitText(seconds: number | null): string | undefined {
  return seconds === null ? undefined : `the first one has waited for ${durationText(seconds * 1_000)}`;
}

function Verdict({ overview: { lists, companies, stale_after_hours: hours } }: { readonly overview: OverviewModel }) {
  if (lists.total === 0 && companies.active === 0) return <FirstCompany />;
  const isWhole = lists.verified === lists.total;
  return (
    <section class={`verdict ${isWhole ? 'good' : 'warn'}`} aria-label="How complete the mirror is">
      <p>
        <b>
          {numberText(lists.verified)} of {numberText(lists.total)}
        </b>{' '}
        lists were proved complete before their deadline
      </p>
      <progress max={Math.max(1, lists.total)} value={lists.verified} aria-label="Lists that are proved complete" />
      <p class="hint">
        {!isWhole &&
          `${numberText(lists.late)} late, ${numberText(lists.never)} never proved, ${numberText(lists.unverified)} read without a proof. `}
        {lists.unavailable > 0 && `${numberText(lists.unavailable)} more are unavailable: their companies do not have them. `}
        The deadline of a list is {numberText(hours)} hours after its last proof (STALE_AFTER_HOURS).
      </p>
    </section>
  );
}

function FirstCompany() {
  return (
    <p class="notice">
      No company is connected yet. <Link to="/companies/connect">Connect one</Link>: its first sync starts at once.
    </p>
  );
}

interface FigureProps {
  readonly to: string;
  readonly count: number;
  readonly name: string;
  /** A count above zero needs attention. */
  readonly isBad?: boolean;
  readonly note?: string | undefined;
}

function Figure({ to, count, name, isBad = false, note }: FigureProps) {
  return (
    <li class={isBad && count > 0 ? 'bad' : undefined}>
      <Link to={to}>
        <b>{numberText(count)}</b> {name}
        {note && <small>{note}</small>}
      </Link>
    </li>
  );
}
