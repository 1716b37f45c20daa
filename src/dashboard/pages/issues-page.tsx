import { type IssueModel, IssueStatusName } from '../../api/operation/issues.js';
import { IssueCard, mostUrgentFirst } from '../parts/issue-card.js';
import { choice, ENVIRONMENT, type ListProps, listPage } from '../parts/list-page.js';

const STATUSES: Readonly<Record<string, string>> = { ongoing: 'ongoing', resolved: 'ended' };

export const issuesPage = listPage<IssueModel>({
  path: '/issues',
  title: 'Issues',
  limit: 100,
  filters: {
    status: choice('Status', IssueStatusName.options, { none: 'all', textOf: (status) => STATUSES[status] ?? status }),
    snoozed: choice('Snoozed', ['false', 'true'], {
      none: 'all',
      textOf: (value) => (value === 'true' ? 'snoozed' : 'not snoozed'),
    }),
    environment: ENVIRONMENT,
  },
  defaults: { status: 'ongoing' },
  lead: 'Everything that a person should see, grouped by cause: red stays until a person acts, amber may pass by itself. The newest are on the first page.',
  label: 'The issues',
  Items: Issues,
});

function Issues({ list: { data }, filters }: ListProps<IssueModel>) {
  if (data.length === 0)
    return (
      <p class="empty">
        {filters['snoozed'] === undefined ? 'There is no such issue.' : 'There is no issue that matches the filters.'}
      </p>
    );
  return (
    <div class="issues">
      {mostUrgentFirst(data).map((issue) => (
        <IssueCard key={issue.id} issue={issue} />
      ))}
    </div>
  );
}
