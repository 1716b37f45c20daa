import type { CompanyModel } from '../../api/companies/company-model.js';
import { ActionForm, AsCommands, useCommands } from '../parts/action-form.js';
import { type ActionName, ofCompany } from '../parts/actions.js';
import { Field, Select } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import type { PageRequest } from '../parts/page-request.js';
import { Environment, Link } from '../parts/shown-values.js';

/** The page that forgets a person, or lets one in again. The id is in the body of the form, never in an address. */
export async function forgetPage({ ask, params }: PageRequest): Promise<PageContent> {
  const company = await ask<CompanyModel>(ofCompany(params));
  return { title: `Forget a person of ${company.name ?? company.company_id}`, body: <ForgetView company={company} /> };
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
