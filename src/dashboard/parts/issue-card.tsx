import type { IssueModel } from '../../api/operation/issues.js';
import { causeOf } from '../../core/issue-causes.js';
import { ActionForm, AsCommands, get, useCommands, useMay } from './action-form.js';
import type { ActionName } from './actions.js';
import { CompanyLink, companyCount, Environment, Lasting, Link, numberText, When } from './shown-values.js';

/** An issue of so few companies names them instead of counting them. */
const MOST_NAMED = 3;

export function issueTitle({ cause, resource }: Pick<IssueModel, 'cause' | 'resource'>): string {
  return `${causeOf(cause).title}${resource ? `: ${resource}` : ''}`;
}

/** Red before amber, and among these the one with the most companies first. */
export function mostUrgentFirst(issues: readonly IssueModel[]): IssueModel[] {
  const rank = ({ severity }: IssueModel) => (severity === 'action' ? 0 : 1);
  return issues.toSorted((one, other) => rank(one) - rank(other) || other.companies - one.companies);
}

/** An issue as a row: the trouble, the companies, for how long, and one button. It opens for everything else. On a phone it is a card. */
export function IssueCard({ issue }: { readonly issue: IssueModel }) {
  const { id, environment, severity, status, companies, first_seen_at, resolved_at, samples, snoozed } = issue;
  const heading = `issue-${id}`;
  return (
    // No landmark: an issue that has ended may have the name of another.
    <article class={`issue must-${severity === 'action' ? 'act' : 'watch'}`} aria-labelledby={heading}>
      <h2 id={heading}>
        <Link to={`/issues/${id}`}>{issueTitle(issue)}</Link>
      </h2>
      <p class="under">
        <b>{companyCount(companies)}</b>
        <Late issue={issue} />
        <Environment name={environment} />
        {status === 'resolved' ? (
          <span>
            ended <When at={resolved_at} isBrief />
          </span>
        ) : (
          <Lasting since={first_seen_at} isBrief />
        )}
        <Snoozed snoozed={snoozed} />
        {companies <= MOST_NAMED && samples.length === companies && <Named issue={issue} />}
      </p>
      {status === 'ongoing' && <Remedy issue={issue} describedBy={heading} />}
      <details>
        <summary>
          More<span class="unseen"> about “{issueTitle(issue)}”</span>
        </summary>
        <IssueAdvice issue={issue} />
        {samples.length > 0 && companies > MOST_NAMED && (
          <ul class="ids">
            {samples.map(({ company_id, company_name }) => (
              <li key={company_id}>
                <CompanyLink environment={environment} companyId={company_id} name={company_name} />
              </li>
            ))}
            {samples.length < companies && (
              <li>
                <Link to={`/issues/${id}`}>All {companyCount(companies)}</Link>
              </li>
            )}
          </ul>
        )}
        <IssueCommands issue={issue} />
      </details>
    </article>
  );
}

function Late({ issue: { late, companies } }: { readonly issue: IssueModel }) {
  if (late === undefined) return null;
  const isAll = late === companies;
  return <span>{isAll ? (companies === 1 ? 'and it is late' : 'all of them late') : `${numberText(late)} of them late`}</span>;
}

function Snoozed({ snoozed }: Pick<IssueModel, 'snoozed'>) {
  if (!snoozed) return null;
  return (
    <span class="state">
      snoozed until <When at={snoozed.until} isBrief />
    </span>
  );
}

function Named({ issue: { samples, environment } }: { readonly issue: IssueModel }) {
  return (
    <span class="named">
      {samples.map(({ company_id, company_name }, i) => (
        <span key={company_id}>
          {i > 0 && ', '}
          <Link to={`/companies/${environment}/${company_id}`}>{company_name || company_id}</Link>
        </span>
      ))}
    </span>
  );
}

export function IssueAdvice({ issue: { advice, docs_url } }: { readonly issue: IssueModel }) {
  return (
    <p>
      {advice} <a href={docs_url}>More about it</a>
    </p>
  );
}

/** Finds the button for the call of an issue. */
function buttonOf({ action }: Pick<IssueModel, 'action'>): ActionName | undefined {
  if (action.path === '/api/connect-links/reauthorization') return 'connect_links.create';
  if (action.path === '/api/held-tokens/release') return 'held_tokens.release';
  if (action.path === '/api/notifications/redeliver') return 'notifications.redeliver';
  if (action.path === '/api/syncs') return 'issue.sync';
  return undefined;
}

/** Finds the list of the API that has the cases of the issue one by one. */
function listOf({ action, environment }: IssueModel): string | undefined {
  if (action.method === 'GET') return action.path;
  return buttonOf({ action }) === 'connect_links.create'
    ? `/api/companies?status=reauthorization_required&environment=${environment}`
    : undefined;
}

const PAGES_OF_LISTS: Readonly<Record<string, readonly [path: string, name: string]>> = {
  '/api/companies': ['/companies', 'Show the companies'],
  '/api/holds': ['/holds', 'Decide on the holds'],
  '/api/budget': ['/queue', 'Show the request budget'],
  '/api/queue': ['/queue', 'Show the queue'],
  '/api/runs': ['/runs', 'Show the runs'],
  '/api/schema': ['/schema', 'Show the columns'],
};

function remedyOf(issue: IssueModel) {
  const button = buttonOf(issue);
  const fields =
    button === 'issue.sync' ? { issue_id: issue.id, count: String(issue.companies) } : { environment: issue.environment };
  const list = listOf(issue);
  return { button, fields, list };
}

/** Shows the one button for all companies: what cures it, or the page on which a person decides. A person who may do neither is led to the issue. */
export function Remedy({ issue, describedBy }: { readonly issue: IssueModel; readonly describedBy: string }) {
  const may = useMay();
  const { button, fields, list } = remedyOf(issue);
  if (button && may(button))
    return (
      <div class="actions">
        <ActionForm name={button} fields={fields} describedBy={describedBy} />
      </div>
    );
  const [path = '', query = ''] = list?.split('?') ?? [];
  const [page, name] = PAGES_OF_LISTS[path] ?? [`/issues/${issue.id}`, 'Show it'];
  const isOwn = PAGES_OF_LISTS[path] === undefined;
  return (
    <div class="actions">
      <Link class="button" to={isOwn || query === '' ? page : `${page}?${query}`} describedBy={describedBy}>
        {name}
      </Link>
    </div>
  );
}

/** The calls of the issue: its button, and the list of its cases. */
export function IssueCommands({ issue }: { readonly issue: IssueModel }) {
  const { button, fields, list } = remedyOf(issue);
  const commands = useCommands(button ? [button] : [], fields);
  const path = list?.split('?')[0] ?? '';
  const cases = list === undefined ? [] : [get(PAGES_OF_LISTS[path]?.[1] ?? 'The list', list)];
  return (
    <AsCommands commands={[...commands, ...cases, get('The companies of this issue', `/api/issues/${issue.id}/companies`)]} />
  );
}
