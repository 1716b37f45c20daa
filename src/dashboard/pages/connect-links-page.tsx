import type { ReauthorizationLinkModel } from '../../api/companies/connect-links.js';
import { ActionForm } from '../parts/action-form.js';
import { COMPANY, ENVIRONMENT } from '../parts/columns.js';
import { Copyable } from '../parts/copyable.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import type { ListResponse } from '../parts/list-page.js';
import { companyCount, Link, When } from '../parts/shown-values.js';

interface ConnectLinksProps {
  readonly links: ListResponse<ReauthorizationLinkModel>;
  /** The fields of the form, so that the file has the links of this page. */
  readonly fields: Readonly<Record<string, string>>;
  readonly back: string;
}

/** The new links for companies that must authorize again. */
export function connectLinksPage(props: ConnectLinksProps): PageContent {
  return { title: 'The links', body: <ConnectLinks {...props} /> };
}

function ConnectLinks({ links: { data, next_cursor }, fields, back }: ConnectLinksProps) {
  const { environment = '' } = fields;
  return (
    <>
      <h1>{data.length === 0 ? 'No company must authorize again' : `Links for ${companyCount(data.length)}`}</h1>
      {data.length > 0 && (
        <>
          <p class="lead">
            Send each link only to the administrator of its company: anyone who has it may authorize for the company. The links
            stay the same until they end.
          </p>
          <div class="actions">
            <ActionForm name="connect_links.create" fields={{ ...fields, as: 'csv' }} back={back} label="Download as CSV" />
          </div>
        </>
      )}
      <DataTable
        caption="Companies that must authorize again, and the link of each"
        columns={environment === '' ? [COMPANY, ENVIRONMENT, ...OF_LINK] : [COMPANY, ...OF_LINK]}
        rows={data}
        keyOf={(link) => `${link.environment}/${link.company_id}`}
        empty={environment === '' ? 'Every company is authorized.' : 'Every company of this environment is authorized.'}
      />
      {next_cursor !== null && (
        <div class="actions">
          <ActionForm
            name="connect_links.create"
            fields={{ environment, cursor: next_cursor }}
            back={back}
            label="Make the next ones"
          />
        </div>
      )}
      <p>
        <Link to={back}>Back</Link>
      </p>
    </>
  );
}

const OF_LINK: readonly Column<ReauthorizationLinkModel>[] = [
  column('Link', ({ company_id, company_name, url }) => (
    <Copyable label={`Link of ${company_name ?? company_id}`} value={url} isInTable />
  )),
  column('Ends', ({ expires_at }) => <When at={expires_at} />),
];
