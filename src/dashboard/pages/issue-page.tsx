import type { IssueCompanyModel, IssueModel } from '../../api/operation/issues.js';
import { failureInWords } from '../../core/failure-words.js';
import { ActionForm, AsCommands, useCommands, useMay } from '../parts/action-form.js';
import { COMPANY } from '../parts/columns.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import { Field, Select } from '../parts/fields.js';
import { IssueAdvice, IssueCommands, issueTitle, Remedy } from '../parts/issue-card.js';
import type { PageContent } from '../parts/layout.js';
import { filtersOf, type ListResponse, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { companyCount, Environment, Fact, Lasting, numberText, ServiceSays, State, When } from '../parts/shown-values.js';

export async function issuePage({ ask, params, query }: PageRequest): Promise<PageContent> {
  const id = encodeURIComponent(params['id'] ?? '');
  const issue = await ask<IssueModel>(`/api/issues/${id}`);
  const path = listAddress(`/api/issues/${id}/companies`, { ...filtersOf(query, ['cursor']), limit: 100 }) as `/api/${string}`;
  const companies = await ask<ListResponse<IssueCompanyModel>>(path);
  return { title: issueTitle(issue), body: <Issue issue={issue} companies={companies} /> };
}

interface IssueProps {
  readonly issue: IssueModel;
  readonly companies: ListResponse<IssueCompanyModel>;
}

function Issue({ issue, companies }: IssueProps) {
  const { id, environment, severity, status, late, first_seen_at, last_seen_at, resolved_at, resource } = issue;
  const isOngoing = status === 'ongoing';
  return (
    <>
      <div class="head">
        <div>
          <h1 id="issue">{issueTitle(issue)}</h1>
          <p class="under">
            <span class={`state ${isOngoing ? (severity === 'action' ? 'bad' : 'warn') : 'good'}`}>
              {isOngoing ? (severity === 'action' ? 'A person must act' : 'It may pass') : 'It has ended'}
            </span>
            <Environment name={environment} />
            <b>{companyCount(issue.companies)}</b>
          </p>
        </div>
        {isOngoing && <Remedy issue={issue} describedBy="issue" />}
      </div>
      <IssueAdvice issue={issue} />
      <dl class="facts">
        <Fact name="First seen">{isOngoing ? <Lasting since={first_seen_at} /> : <When at={first_seen_at} />}</Fact>
        <Fact name="Last seen">
          <When at={last_seen_at} />
        </Fact>
        {resolved_at !== undefined && (
          <Fact name="Ended">
            <When at={resolved_at} />
          </Fact>
        )}
        {late !== undefined && <Fact name="Late for this reason">{companyCount(late)}</Fact>}
      </dl>
      <Snooze issue={issue} />
      <h2>Companies</h2>
      <DataTable
        caption={`The companies that have it now${resource ? `, with their list ${resource}` : ''}`}
        columns={resource ? [...COLUMNS, ...OF_LIST] : COLUMNS}
        rows={companies.data}
        keyOf={({ company_id }) => company_id}
        empty={isOngoing ? 'No company has it now.' : 'No company has it any more.'}
      />
      <Pages path={`/issues/${id}`} filters={{}} next={companies.next_cursor} />
      <IssueCommands issue={issue} />
    </>
  );
}

const DAYS: readonly (readonly [value: string, text: string])[] = [
  ['1', '1 day'],
  ['3', '3 days'],
  ['7', 'a week'],
  ['14', 'two weeks'],
  ['30', '30 days'],
];

/** Lets a person put the issue away until a time, and shows who did so, and why. */
function Snooze({ issue: { id, status, snoozed } }: { readonly issue: IssueModel }) {
  const may = useMay();
  const commands = useCommands([snoozed ? 'issue.unsnooze' : 'issue.snooze'], { id, days: '7', reason: 'WHY' });
  if (status !== 'ongoing') return null;
  if (snoozed)
    return (
      <section class="notice" aria-label="Snoozed">
        <p>
          {snoozed.by} has snoozed it until <When at={snoozed.until} />: <q>{snoozed.reason}</q>
        </p>
        <ActionForm name="issue.unsnooze" fields={{ id }} />
        <AsCommands commands={commands} />
      </section>
    );
  if (!may('issue.snooze')) return null;
  return (
    <details class="card narrow">
      <summary>Snooze it</summary>
      <p class="hint">
        It leaves the overview, and comes back at the end, or once it has {numberText(10)} times the companies or needs a person.
        Notifications of its growth wait as long.
      </p>
      <ActionForm name="issue.snooze" fields={{ id }}>
        <Select label="For" name="days" options={DAYS} chosen="7" />
        <Field label="Reason">
          <input type="text" name="reason" required maxLength={500} />
        </Field>
      </ActionForm>
      <AsCommands commands={commands} />
    </details>
  );
}

const COLUMNS: readonly Column<IssueCompanyModel>[] = [COMPANY];

const OF_LIST: readonly Column<IssueCompanyModel>[] = [
  column('State', ({ list }) => list && <State of={list.state} />),
  column('Since', ({ list }) => list?.since && <Lasting since={list.since} />),
  column('Why', ({ list }) => list && <Why reason={list.reason} sentence={list.service_says} />),
  column('Last proof', ({ list }) => list && <When at={list.last_verified_at} />),
];

function Why({ reason, sentence }: { readonly reason: string | undefined; readonly sentence: string | undefined }) {
  return (
    <span class="details">
      {reason && failureInWords(reason)}
      <ServiceSays sentence={sentence} />
    </span>
  );
}
