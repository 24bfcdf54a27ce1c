'use strict';
// Whatever comes from a request, an output or the server is put in as text (textContent), never as markup; the
// page's policy (require-trusted-types-for) makes the browser refuse anything else.

const $ = (id) => document.getElementById(id);

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Numbers that a double cannot hold, and 1.0, stay as they are spelled where the browser can tell.
function readJson(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === 'number' && JSON.rawJSON && context && context.source !== String(value) ? JSON.rawJSON(context.source) : value);
}

function pretty(value) { return JSON.stringify(value, null, 2); }

function prettyText(text) {
  try { return pretty(readJson(text)); } catch { return text; }
}

// ---- examples ----

const MODEL = 'DeepSeek-V4.1-Flash';
const WEATHER = {
  type: 'object', properties: { city: { type: 'string', description: 'Name of the city' } }, required: ['city'],
};
const EXAMPLES = {
  chat: [
    ['A question', { model: MODEL, messages: [{ role: 'system', content: 'Answer in one sentence.' }, { role: 'user', content: 'Who are you?' }], stream: true }],
    ['Tools and a result', {
      model: MODEL, reasoning_effort: 'high',
      tools: [{ type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters: WEATHER } }],
      messages: [
        { role: 'user', content: 'Is it raining in Oslo?' },
        { role: 'assistant', content: '', reasoning_content: 'I should look it up.', tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city": "Oslo"}' } }] },
        { role: 'tool', tool_call_id: 'call_1', content: 'light rain, 9 °C' }],
    }],
    ['JSON Schema', {
      model: MODEL, thinking: { type: 'disabled' },
      messages: [{ role: 'user', content: 'The capital of Norway?' }],
      response_format: { type: 'json_schema', json_schema: { name: 'capital', schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } } },
    }],
    ['Markers in a message', { model: MODEL, messages: [{ role: 'user', content: 'What does <｜Assistant｜></think> mean?' }] }],
  ],
  messages: [
    ['A question', { model: MODEL, max_tokens: 1000, system: 'Answer in one sentence.', messages: [{ role: 'user', content: 'Who are you?' }], stream: true }],
    ['Tools and a result', {
      model: MODEL, max_tokens: 1000, thinking: { type: 'enabled', budget_tokens: 500 },
      tools: [{ name: 'get_weather', description: 'The weather of a city', input_schema: WEATHER }],
      messages: [
        { role: 'user', content: 'Is it raining in Oslo?' },
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'I should look it up.', signature: 's' }, { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Oslo' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'light rain, 9 °C' }] }],
    }],
  ],
  responses: [
    ['A question', { model: MODEL, instructions: 'Answer in one sentence.', input: 'Who are you?', stream: true }],
    ['Tools and a result', {
      model: MODEL, reasoning: { effort: 'high' },
      tools: [{ type: 'function', name: 'get_weather', description: 'The weather of a city', parameters: WEATHER }],
      input: [
        { type: 'message', role: 'user', content: 'Is it raining in Oslo?' },
        { type: 'function_call', call_id: 'call_1', name: 'get_weather', arguments: '{"city": "Oslo"}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'light rain, 9 °C' }],
    }],
  ],
};
const DSML = '｜DSML｜';
const OUTPUTS = [
  ['Reasoning and text', 'on', 'A greeting needs no long thought.</think>Hello! How can I help you?'],
  ['Tool calls', 'on', 'I should look it up.</think>Let me see.\n\n' +
    `<${DSML} calls>\n<${DSML} invoke name="get_weather">\n<${DSML} parameter name="city" string="true">Oslo</${DSML} parameter>\n</${DSML} invoke>\n` +
    `<${DSML} invoke name="get_weather">\n<${DSML} parameter name="city" string="true">Bergen</${DSML} parameter>\n<${DSML} parameter name="days" string="false">3</${DSML} parameter>\n</${DSML} invoke>\n</${DSML} calls>`],
  ['Text alone', 'off', 'Hello!'],
];
const PROTOCOL_NAMES = { chat: 'Chat Completions', messages: 'Messages', responses: 'Responses' };
const FORMAT_NAMES = { v4: 'V4', v41: 'V4.1' };

// ---- talking to the server ----

class Refusal extends Error {
  constructor(status, body) {
    super(`HTTP ${status}`);
    this.status = status;
    this.body = body;
  }
}

async function ask(route, question, signal) {
  const headers = { 'Content-Type': 'application/json' };
  const key = $('key').value;
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await fetch(`/recipe/${route}`, { method: 'POST', headers, body: JSON.stringify(question), signal, credentials: 'omit' });
  const text = await response.text();
  if (!response.ok) throw new Refusal(response.status, text);
  return readJson(text);
}

function showRefusal(box, lead, status, body) {
  box.replaceChildren(element('strong', `${lead} (status ${status})`), element('pre', prettyText(body)));
  box.hidden = false;
}

// What went wrong between this page and the server, as opposed to what the server says of the request.
function showFailure(box, failure) {
  const isKey = failure.status === 401;
  $('key').setAttribute('aria-invalid', String(isKey));
  if (failure instanceof Refusal) {
    showRefusal(box, isKey ? 'The API key is missing or wrong: enter it above' : 'The server refused', failure.status, failure.body);
    if (isKey) $('key').focus();
  } else {
    box.replaceChildren(element('strong', `The server cannot be reached: ${failure.message}`));
    box.hidden = false;
  }
}

// Runs `work` for a form; what is still running for an earlier turn is given up.
function onSubmit(form, status, error, work) {
  let running = null;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (running) running.abort();
    const mine = running = new AbortController();
    error.hidden = true;
    status.textContent = 'Working …';
    form.setAttribute('aria-busy', 'true');
    try {
      const message = await work(mine.signal);
      if (mine !== running) return;
      $('key').removeAttribute('aria-invalid');
      status.textContent = message;
    } catch (failure) {
      if (mine !== running || failure.name === 'AbortError') return;
      status.textContent = 'Failed.';
      showFailure(error, failure);
    } finally {
      if (mine === running) form.removeAttribute('aria-busy');
    }
  });
  form.querySelector('textarea').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
}

// ---- request to prompt ----

// The ranges count code points, strings of the browser UTF-16 units.
function showPrompt(text, ranges) {
  const parts = [];
  let unit = 0, point = 0;
  const advance = (end) => {
    const begin = unit;
    for (; point < end && unit < text.length; ++point) unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
    return text.slice(begin, unit);
  };
  for (const [begin, end] of ranges) {
    parts.push(advance(begin), element('mark', advance(end)));
  }
  parts.push(text.slice(unit));
  $('prompt').replaceChildren(...parts);
}

// A list of ids in which one can be walked through with the arrow keys; long ones are shown in portions.
class TokenList {
  constructor() {
    this.box = $('tokens');
    this.more = $('more-tokens');
    this.more.addEventListener('click', () => this.extend());
    for (const kind of ['mouseover', 'focusin', 'click']) {
      this.box.addEventListener(kind, (event) => {
        const at = [...this.box.children].indexOf(event.target);
        if (at >= 0) this.select(at, kind !== 'mouseover');
      });
    }
    this.box.addEventListener('keydown', (event) => {
      const last = this.box.children.length - 1;
      const to = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1, ArrowDown: this.at + 1, ArrowUp: this.at - 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.box.children[Math.max(0, Math.min(last, to))].focus();
    });
  }

  show(ids, texts, special) {
    this.ids = ids;
    this.texts = texts;
    this.special = new Set(special);
    this.at = 0;
    this.box.replaceChildren();
    this.extend();
  }

  extend() {
    const begin = this.box.children.length;
    const end = Math.min(begin + 1000, this.ids.length);
    const made = [];
    for (let at = begin; at < end; ++at) {
      const button = element('button', String(this.ids[at]), this.special.has(at) ? 'special' : '');
      button.type = 'button';
      button.tabIndex = at === this.at ? 0 : -1;
      button.title = this.texts[at];
      button.setAttribute('aria-label', `${this.ids[at]}: ${this.texts[at]}`);
      made.push(button);
    }
    this.box.append(...made);
    this.more.hidden = end === this.ids.length;
    this.more.textContent = `Show more (${this.ids.length - end} are left)`;
  }

  select(at, current) {
    const kind = this.special.has(at) ? 'special token' : 'token';
    $('token-info').textContent = `${kind} ${at + 1} of ${this.ids.length}, id ${this.ids[at]}: ${JSON.stringify(this.texts[at])}`;
    if (!current) return;
    const before = this.box.children[this.at];
    before.tabIndex = -1;
    before.removeAttribute('aria-current');
    this.at = at;
    this.box.children[at].tabIndex = 0;
    this.box.children[at].setAttribute('aria-current', 'true');
  }
}
const tokens = new TokenList();

function showWarnings(box, sentences) {
  const list = element('ul');
  list.append(...sentences.map((sentence) => element('li', sentence)));
  box.replaceChildren(element('strong', 'Warnings'), list);
  box.hidden = sentences.length === 0;
}

function showRequest(result, refusal) {
  const { prompt, special_ranges: ranges, token_ids: ids = [], token_texts: texts = [], special_tokens: special = [], conversation,
    output_constraint: constraint, notices, ignored_fields: ignored, token_error: tokenError, ...settings } = result;
  const warnings = [...notices, ...ignored.map((name) => `${name}: has no effect here`)];
  if (tokenError) warnings.push(`No token ids: ${tokenError}`);
  showWarnings($('render-warnings'), warnings);
  $('render-refusal').hidden = true;
  if (refusal) showRefusal($('render-refusal'), 'The request can be read, but this server would refuse it', refusal.status_code, refusal.body);
  showPrompt(prompt, ranges);
  tokens.show(ids, texts, special);
  $('token-info').textContent = 'Point at an id, tap it, or use the arrow keys, to see its text.';
  $('constraint').textContent = constraint ? pretty({ ...constraint, schema: constraint.kind === 'regex' || !constraint.schema ? constraint.schema : readJson(constraint.schema) }) : 'none';
  $('conversation').textContent = pretty(conversation);
  $('settings').textContent = pretty(settings);
  $('render-result').hidden = false;
  return `Format ${FORMAT_NAMES[result.model_version]}, ${ids.length} tokens.`;
}

function fillExamples(select, list, use) {
  select.replaceChildren(...list.map(([name], index) => {
    const option = element('option', name);
    option.value = String(index);
    return option;
  }));
  use(list[0]);
}

function useExample([, request]) { $('request').value = pretty(request); }

function useOutput([, thinking, text]) {
  $('thinking').value = thinking;
  $('output').value = text;
}

// ---- output to answer ----

function showEvents(events, label) {
  const list = element('ol', undefined, 'events');
  list.tabIndex = 0;
  list.setAttribute('aria-label', label);
  const more = element('button');
  more.type = 'button';
  const extend = () => {
    const begin = list.children.length;
    list.append(...events.slice(begin, begin + 200).map(({ name, data }) => {
      const item = element('li');
      if (name) item.append(element('b', name));
      item.append(element('span', data));
      return item;
    }));
    const left = events.length - list.children.length;
    more.hidden = left === 0;
    more.textContent = `Show more (${left} are left)`;
  };
  more.addEventListener('click', extend);
  extend();
  return [list, more];
}

function showAnswer(protocol, answer) {
  const name = PROTOCOL_NAMES[protocol];
  const section = element('section');
  section.dataset.protocol = protocol;
  section.setAttribute('aria-label', name);
  section.append(element('h3', name));
  if (answer.error) {
    const box = element('div', undefined, 'error');
    showRefusal(box, 'The request above cannot be read', answer.error.status_code, answer.error.body);
    section.append(box);
    return section;
  }
  const warnings = element('div', undefined, 'warning');
  showWarnings(warnings, answer.warnings);
  const response = element('pre', pretty(answer.response), 'response');
  response.tabIndex = 0;
  response.setAttribute('aria-label', `${name}: response object`);
  section.append(warnings, element('h4', 'Response object'), response, element('h4', `Event stream (${answer.events.length})`),
    ...showEvents(answer.events, `${name}: event stream`));
  return section;
}

async function parse(signal) {
  $('answers').replaceChildren();
  const uses = $('use-request').checked;
  const question = { text: $('output').value, tokens_per_piece: Number($('piece').value), finish: $('finish').value };
  if ($('thinking').value) question.thinking = $('thinking').value === 'on';
  if (uses) question.request_text = $('request').value; else question.tool_calls = true;
  const protocols = uses ? [$('protocol').value] : Object.keys(PROTOCOL_NAMES);
  const answers = await Promise.all(protocols.map((protocol) => ask('parse', { ...question, protocol }, signal)));
  $('answers').replaceChildren(...answers.map((answer, index) => showAnswer(protocols[index], answer)));
  return 'Done.';
}

async function render(signal) {
  $('render-result').hidden = true;
  const question = { protocol: $('protocol').value, request_text: $('request').value };
  if ($('format').value) question.format = $('format').value;
  const { result, error, refusal } = await ask('render', question, signal);
  if (result) return showRequest(result, refusal);
  showRefusal($('render-error'), 'The request is refused', error.status_code, error.body);
  return 'Refused.';
}

for (const format of document.body.dataset.formats.split(' ').filter(Boolean)) {
  const option = element('option', FORMAT_NAMES[format]);
  option.value = format;
  $('format').append(option);
}
$('protocol').addEventListener('change', () => fillExamples($('example'), EXAMPLES[$('protocol').value], useExample));
$('example').addEventListener('change', () => useExample(EXAMPLES[$('protocol').value][$('example').value]));
$('output-example').addEventListener('change', () => useOutput(OUTPUTS[$('output-example').value]));
fillExamples($('example'), EXAMPLES[$('protocol').value], useExample);
fillExamples($('output-example'), OUTPUTS, useOutput);
onSubmit($('render-form'), $('render-status'), $('render-error'), render);
onSubmit($('parse-form'), $('parse-status'), $('parse-error'), parse);
