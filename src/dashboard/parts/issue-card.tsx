import type { IssueModel } from '../../api/operation/issues.js';
import { causeOf } from '../../core/issue-causes.js';
import { ActionForm, AsCommands, get, useCommands } from './action-form.js';
import type { ActionName } from './actions.js';
import { CompanyLink, companyCount, Environment, Link, When } from './shown-values.js';

/** Shows an issue: the trouble, the companies, since when, and the remedy. */
export function IssueCard({ issue }: { readonly issue: IssueModel }) {
  const { cause, environment, resource, severity, companies, first_seen_at, advice, docs_url, samples } = issue;
  const heading = `issue-${issue.id}`;
  return (
    <section class={`card issue must-${severity === 'action' ? 'act' : 'watch'}`} aria-labelledby={heading}>
      <h2 id={heading}>
        {causeOf(cause).title}
        {resource && `: ${resource}`}
      </h2>
      <p class="under">
        <b>{companyCount(companies)}</b>
        <Environment name={environment} />
        <span>
          since <When at={first_seen_at} />
        </span>
      </p>
      <p>
        {advice} <a href={docs_url}>More about it</a>
      </p>
      <Remedy issue={issue} describedBy={heading} />
      {samples.length > 0 && (
        <details>
          <summary>{samples.length < companies ? 'Some of them' : 'All of them'}</summary>
          <ul class="ids">
            {samples.map(({ company_id, company_name }) => (
              <li key={company_id}>
                <CompanyLink environment={environment} companyId={company_id} name={company_name} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
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
};

/** Shows the remedy for all companies: a button, the page on which a person decides, and the same as commands. */
function Remedy({ issue, describedBy }: { readonly issue: IssueModel; readonly describedBy: string }) {
  const button = buttonOf(issue);
  const fields =
    button === 'issue.sync' ? { issue_id: issue.id, count: String(issue.companies) } : { environment: issue.environment };
  const list = listOf(issue);
  const [path = '', query = ''] = list?.split('?') ?? [];
  const [page, name] = PAGES_OF_LISTS[path] ?? [];
  const commands = useCommands(button ? [button] : [], fields);
  return (
    <div class="actions">
      {button && <ActionForm name={button} fields={fields} describedBy={describedBy} />}
      {page !== undefined && (
        <Link class="button" to={query === '' ? page : `${page}?${query}`} describedBy={describedBy}>
          {name}
        </Link>
      )}
      <AsCommands commands={[...commands, ...(list === undefined ? [] : [get(name ?? 'The list', list)])]} />
    </div>
  );
}
