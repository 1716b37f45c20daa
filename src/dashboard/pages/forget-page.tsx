import type { CompanyModel } from '../../api/companies/company-model.js';
import type { RecordModel } from '../../api/companies/records.js';
import { ActionForm, AsCommands, useCommands } from '../parts/action-form.js';
import { type ActionName, ofCompany } from '../parts/actions.js';
import { Field, Select } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import { listAddress } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { erasePath, recordPath } from '../parts/record-links.js';
import { CompanyLink, Environment, Link, numberText } from '../parts/shown-values.js';

/**
 * The page that forgets a person, or lets one in again. With a list and an id in the address it shows who that is, and what goes, before it asks; without
 * them the id is typed into a form.
 */
export async function forgetPage({ ask, params, query }: PageRequest): Promise<PageContent> {
  const company = await ask<CompanyModel>(ofCompany(params));
  const [resource, id] = [query.get('resource') ?? '', query.get('id') ?? ''];
  if (resource !== '' && id !== '') {
    const record = await ask<RecordModel>(listAddress(`${ofCompany(params)}/record`, { resource, id }));
    return { title: `Erase ${record.label}?`, body: <EraseView record={record} /> };
  }
  return { title: `Forget a person of ${company.name ?? company.company_id}`, body: <ForgetView company={company} /> };
}

/** Shows who is erased and what goes, and asks. */
function EraseView({ record }: { readonly record: RecordModel }) {
  const { environment, company_id, company_name, resource, id, label, state, similar, children, history, next_before } = record;
  const commands = useCommands(['record.forget'], { environment, company_id, resource, id });
  const count = `${numberText(history.length)}${next_before === null ? '' : ' or more'}`;
  const entries = `${count} ${count === '1' ? 'entry' : 'entries'}`;
  return (
    <div class="card narrow">
      <h1>Erase {label}?</h1>
      <p class="under">
        <Environment name={environment} />
        <CompanyLink environment={environment} companyId={company_id} name={company_name} />
        <span>
          {resource} <code class="long">{id}</code>
        </span>
      </p>
      {state === 'unknown' && (
        <p role="alert">
          The mirror has no such record. Erasing keeps the id out from now on
          {history.length > 0 && `, and takes ${entries} out of the feed`}.{similar.length > 0 && ' Did you mean '}
          {similar.map((each, n) => (
            <>
              {n > 0 && ', '}
              <Link key={each} to={erasePath({ environment, company_id, resource, id: each })}>
                {each}
              </Link>
            </>
          ))}
          {similar.length > 0 && '?'}
        </p>
      )}
      <div class="actions">
        <ActionForm
          name="record.forget"
          label="Erase this person"
          fields={{ environment, company_id, resource, id }}
          back={`/companies/${environment}/${company_id}`}
        />
        <Link to={recordPath(record)}>Keep the record</Link>
      </div>
      <h2>This goes, and does not come back</h2>
      <ul>
        {state !== 'unknown' && <li>1 {state === 'deleted' ? 'deleted ' : ''}row of the mirror</li>}
        {children.map((child) => (
          <li key={child.resource}>
            {numberText(child.records)} {child.records === 1 ? 'row' : 'rows'} of {child.resource}, which belong to it
          </li>
        ))}
        <li>{entries} of the change feed, and so the history</li>
        <li>its rejected records, and sentences of the service that may name it</li>
      </ul>
      <p>No sync brings the record back, even if the service still has it.</p>
      <h2>This stays</h2>
      <ul>
        <li>exports, backups and copies that were made before: erase it there yourself</li>
        <li>records of other lists that name the same person: search for the name, and erase each</li>
        <li>the record at the service itself</li>
        <li>a keyed hash of the id, which keeps it out, and an entry of the audit that does not say who it was</li>
      </ul>
      <AsCommands commands={commands} />
    </div>
  );
}

function ForgetView({ company }: { readonly company: CompanyModel }) {
  const { environment, company_id, name } = company;
  const commands = useCommands(['record.forget', 'record.lift'], { environment, company_id, resource: 'employees', id: '…' });
  return (
    <div class="card narrow">
      <h1>Forget a person of {name ?? company_id}</h1>
      <p class="under">
        <Environment name={environment} /> <span class="id">{company_id}</span>
      </p>
      <p>
        This erases the record from mirror, feed, history and rejected records, with its children if it is a parent. No sync
        brings it back, even if the service still has it. You cannot undo this.
      </p>
      <p>
        <Link to={`/records?company=${company_id}&environment=${environment}`}>Find the person by name</Link>, if you do not have
        the id.
      </p>
      <RecordForm name="record.forget" company={company} confirmation="Erase this record permanently" />
      <h2>Let a person in again</h2>
      <p>The next sync writes the record, if the service still has it.</p>
      <RecordForm name="record.lift" company={company} confirmation="Let this record in again" />
      <p>
        <Link to={`/companies/${environment}/${company_id}`}>Back to the company</Link>
      </p>
      <AsCommands commands={commands} />
    </div>
  );
}

interface RecordFormProps {
  readonly name: ActionName;
  readonly company: CompanyModel;
  readonly confirmation: string;
}

function RecordForm({ name, company: { environment, company_id, resources }, confirmation }: RecordFormProps) {
  return (
    <ActionForm name={name} fields={{ environment, company_id }} back={`/companies/${environment}/${company_id}`}>
      {resources.length === 0 ? (
        <Field label="List">
          <input type="text" name="resource" required />
        </Field>
      ) : (
        <Select label="List" name="resource" options={resources.map(({ resource }) => [resource, resource])} />
      )}
      <Field label="Id of the record">
        <input type="text" name="id" required maxLength={2_000} autocomplete="off" />
      </Field>
      <label>
        <input type="checkbox" name="confirmed" value="yes" required /> {confirmation}
      </label>
    </ActionForm>
  );
}
