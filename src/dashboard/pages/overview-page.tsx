import type { BudgetModel } from '../../api/operation/budget.js';
import type { IssueModel } from '../../api/operation/issues.js';
import type { LastNightModel } from '../../api/operation/last-night.js';
import type { NightModel } from '../../api/operation/nights.js';
import type { OverviewModel } from '../../api/operation/overview.js';
import { AsCommands, get } from '../parts/action-form.js';
import { IssueCard, mostUrgentFirst } from '../parts/issue-card.js';
import { LastNight } from '../parts/last-night.js';
import type { PageContent } from '../parts/layout.js';
import { type ListResponse, listAddress } from '../parts/list-page.js';
import { NIGHTS_SHOWN, Nights } from '../parts/night-calendar.js';
import type { PageRequest } from '../parts/page-request.js';
import { durationText, Link, numberText, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { BudgetTable } from './queue-page.js';

const NIGHTS = `/api/nights?days=${NIGHTS_SHOWN}` as const;
const ISSUES = '/api/issues?status=ongoing&snoozed=false&limit=500';

export async function overviewPage({ ask }: PageRequest): Promise<PageContent> {
  const [overview, night, issues, nights, budget] = await Promise.all([
    ask<OverviewModel>('/api/overview'),
    ask<LastNightModel>('/api/last-night'),
    ask<ListResponse<IssueModel>>(ISSUES),
    ask<{ data: readonly NightModel[] }>(NIGHTS),
    ask<{ data: readonly BudgetModel[] }>('/api/budget'),
  ]);
  const props = { overview, night, issues: mostUrgentFirst(issues.data), nights: nights.data, budget: budget.data };
  return { title: 'Overview', body: <Overview {...props} /> };
}

interface OverviewProps {
  readonly overview: OverviewModel;
  readonly night: LastNightModel;
  readonly issues: readonly IssueModel[];
  readonly nights: readonly NightModel[];
  readonly budget: readonly BudgetModel[];
}

function Overview({ overview, night, issues, nights, budget }: OverviewProps) {
  const address = useAddress();
  const { lists, companies, oldest_verified_at } = overview;
  const isEmpty = lists.total === 0 && companies.active === 0;
  return (
    <div id="overview" hx-get={address('/')} hx-trigger="every 15s" hx-select="#overview" hx-swap="outerMorph">
      <h1>Overview</h1>
      {isEmpty ? <FirstCompany /> : <LastNight night={night} overview={overview} />}
      <Issues issues={issues} snoozed={overview.issues_snoozed} isEmpty={isEmpty} />
      <Figures overview={overview} night={night} />
      <p class="hint">
        The oldest proof is from <When at={oldest_verified_at} none="no time yet" />.
      </p>
      {overview.quiet_until && (
        <p class="hint">
          In quiet hours nothing is asked of the service: they end <When at={overview.quiet_until} />.
        </p>
      )}
      <Nights nights={nights} />
      <h2>Request budget</h2>
      <BudgetTable rows={budget} />
      <AsCommands
        commands={[
          get('This overview', '/api/overview'),
          get('Last night', '/api/last-night'),
          get('The lists that last night lacks', '/api/unproved'),
          get('The nights', NIGHTS),
          get('The issues', ISSUES),
        ]}
      />
    </div>
  );
}

/** With more issues the first ones fill a screen, and the page of issues has the others. */
const MOST_SHOWN = 12;

interface IssuesProps {
  readonly issues: readonly IssueModel[];
  readonly snoozed: number;
  readonly isEmpty: boolean;
}

/** The issues that a person must act on, or should see. */
function Issues({ issues, snoozed, isEmpty }: IssuesProps) {
  if (isEmpty && issues.length === 0) return null;
  const shown = issues.slice(0, MOST_SHOWN);
  return (
    <>
      {issues.length === 0 && <p class="none">No issue: no person has to do anything.</p>}
      <div class="issues">
        {shown.map((issue) => (
          <IssueCard key={issue.id} issue={issue} />
        ))}
      </div>
      {(issues.length > shown.length || snoozed > 0) && (
        <p class="hint">
          {issues.length > shown.length && <Link to="/issues">All {numberText(issues.length)} issues</Link>}{' '}
          {snoozed > 0 && <Link to="/issues?snoozed=true">{numberText(snoozed)} snoozed</Link>}
        </p>
      )}
    </>
  );
}

function Figures({ overview, night: { began_at } }: { readonly overview: OverviewModel; readonly night: LastNightModel }) {
  const { companies, lists, runs, last_night: night, holds_open, workers } = overview;
  const failedRuns = listAddress('/runs', { status: 'failed', trigger: 'nightly', since: began_at });
  return (
    <ul class="figures">
      <Figure to="/companies?status=active" count={companies.active} name="active companies" />
      <Figure
        to="/companies?status=reauthorization_required"
        count={companies.reauthorization_required}
        name="must authorize"
        isBad
      />
      <Figure to="/companies?status=paused" count={companies.paused} name="paused" />
      <Figure to="/companies?proof=late" count={lists.late} name="late lists" isBad />
      <Figure to="/companies?proof=never" count={lists.never} name="lists never proved" isBad={lists.first_proof_overdue > 0} />
      <Figure to={failedRuns} count={night.failed} name="failed last night" isBad />
      <Figure to="/holds?status=open" count={holds_open} name="open holds" isBad />
      <Figure to="/runs?status=running" count={runs.running} name="running" />
      <Figure to="/runs?status=queued" count={runs.queued} name="queued" note={waitText(overview.oldest_waiting_seconds)} />
      <Figure to="/queue" count={workers} name="workers" isBad={workers === 0} />
    </ul>
  );
}

function waitText(seconds: number | null): string | undefined {
  return seconds === null ? undefined : `the first one has waited for ${durationText(seconds * 1_000)}`;
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
