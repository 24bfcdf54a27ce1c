// What people do with the demo page. A scenario fails by throwing; run.mjs adds what the page itself complains of.
import assert from 'node:assert/strict';

const open = (page, url) => page.goto(`${url}/recipe`);
const render = async (page) => {
  await page.getByRole('button', { name: 'Show the prompt' }).click();
  await page.locator('#render-form:not([aria-busy])').waitFor();
};
const parse = async (page) => {
  await page.getByRole('button', { name: 'Show the answers' }).click();
  await page.locator('#parse-form:not([aria-busy])').waitFor();
};
const shownIds = async (page) => (await page.locator('#tokens button').allTextContents()).map(Number);
const post = async (url, path, body) => {
  const response = await fetch(url + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.equal(response.status, 200, `${path}: ${response.status}`);
  return response.json();
};
const eventsOf = async (page, protocol) => {
  const items = page.locator(`#answers section[data-protocol=${protocol}] .events li`);
  return (await items.locator('span').allTextContents()).map((data) => JSON.parse(data));
};
const responseOf = async (page, protocol) =>
  JSON.parse(await page.locator(`#answers section[data-protocol=${protocol}] .response`).textContent());
const noSidewaysScroll = async (page) => {
  const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(content <= view, `the page is ${content} pixels wide in a view of ${view}`);
};

export const scenarios = [];
const scenario = (name, run, options) => scenarios.push({ name, run, options });

for (const protocol of ['chat', 'messages', 'responses']) {
  scenario(`renders-the-examples-of-${protocol}`, async ({ page, url }) => {
    await open(page, url);
    await page.getByLabel('Protocol', { exact: true }).selectOption(protocol);
    const example = page.getByLabel('Example').first();
    const names = (await example.locator('option').allTextContents()).filter((name) => !name.startsWith('Markers'));
    assert.ok(names.length >= 2);
    for (const name of names) {
      await example.selectOption(name);
      await render(page);
      assert.ok(await page.locator('#render-error').isHidden(), name);
      const prompt = await page.locator('#prompt').textContent();
      const marks = await page.locator('#prompt mark').allTextContents();
      assert.equal(marks[0], '<｜begin▁of▁sentence｜>');
      assert.ok(marks.includes('<｜User｜>') && marks.includes('<｜Assistant｜>'), marks.join());
      const ids = await shownIds(page);
      const { tokens } = await post(url, '/tokenize', { prompt, add_special_tokens: false });
      assert.deepEqual(ids, tokens, name);
      // As many ids are special as texts are marked, and each says which text it is.
      const special = await page.locator('#tokens button.special').evaluateAll((found) => found.map((one) => one.title));
      assert.deepEqual(special, marks, name);
      assert.equal((await page.locator('#render-status').textContent()), `Format V4.1, ${ids.length} tokens.`);
      assert.ok(JSON.parse(await page.locator('#conversation').textContent()).messages.length > 0);
      JSON.parse(await page.locator('#settings').textContent());
      if (protocol === 'chat') {
        const body = JSON.parse(await page.getByLabel('Request body (JSON)').inputValue());
        assert.deepEqual((await post(url, '/tokenize', body)).tokens, ids);
      } else if (protocol === 'messages') {
        const body = JSON.parse(await page.getByLabel('Request body (JSON)').inputValue());
        assert.equal((await post(url, '/v1/messages/count_tokens', body)).input_tokens, ids.length);
      }
    }
  });
}

scenario('text-that-spells-a-marker-is-not-marked', async ({ page, url }) => {
  await open(page, url);
  await page.getByLabel('Example').first().selectOption('Markers in a message');
  await render(page);
  const prompt = await page.locator('#prompt').textContent();
  const marks = await page.locator('#prompt mark').allTextContents();
  assert.equal(prompt.split('<｜Assistant｜>').length - 1, 2);
  assert.equal(marks.filter((mark) => mark === '<｜Assistant｜>').length, 1);
  assert.equal(await page.locator('#tokens button.special').count(), marks.length);
});

scenario('marks-stay-in-place-behind-characters-of-two-units', async ({ page, url }) => {
  await open(page, url);
  await page.getByLabel('Request body (JSON)').fill(JSON.stringify({ model: 'DeepSeek-V4.1-Flash', messages: [{ role: 'user', content: '👍🏽 日本 é' }] }));
  await render(page);
  const marks = await page.locator('#prompt mark').allTextContents();
  assert.ok(marks.length > 2 && marks.every((mark) => mark.startsWith('<') && mark.endsWith('>')), marks.join());
  assert.ok((await page.locator('#prompt').textContent()).includes('<｜User｜>👍🏽 日本 é<｜Assistant｜>'));
});

scenario('offers-both-prompt-formats', async ({ page, url }) => {
  await open(page, url);
  const format = page.getByLabel('Prompt format');
  assert.deepEqual(await format.locator('option').allTextContents(), ["as the model's name says", 'V4', 'V4.1']);
  await page.getByLabel('Example').first().selectOption('Tools and a result');
  const prompts = {};
  for (const name of ['V4', 'V4.1']) {
    await format.selectOption(name);
    await render(page);
    assert.match(await page.locator('#render-status').textContent(), new RegExp(`^Format ${name.replace('.', '\\.')}, \\d+ tokens\\.$`));
    prompts[name] = await page.locator('#prompt').textContent();
  }
  assert.notEqual(prompts.V4, prompts['V4.1']);
});

scenario('shows-the-text-of-a-token', async ({ page, url }) => {
  await open(page, url);
  await render(page);
  const button = page.locator('#tokens button').nth(1);
  const text = await button.getAttribute('title');
  await button.hover();
  const info = page.locator('#token-info');
  assert.ok((await info.textContent()).endsWith(`: ${JSON.stringify(text)}`));
  await page.locator('#tokens button').first().click();
  assert.match(await info.textContent(), /^special token 1 of \d+, id 0: "<｜begin▁of▁sentence｜>"$/);
});

scenario('shows-the-constraint-and-that-it-is-or-is-not-served', async ({ page, url }) => {
  await open(page, url);
  await page.getByLabel('Example').first().selectOption('JSON Schema');
  const body = await page.getByLabel('Request body (JSON)').inputValue();
  await render(page);
  const constraint = JSON.parse(await page.locator('#constraint').textContent());
  assert.equal(constraint.kind, 'json');
  assert.equal(constraint.schema.properties.city.type, 'string');
  const served = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  const refusal = page.locator('#render-refusal');
  assert.equal(await refusal.isVisible(), !served.ok);
  if (!served.ok) {
    assert.deepEqual(JSON.parse(await refusal.locator('pre').textContent()), await served.json());
  }
});

scenario('shows-refusals-in-the-shape-of-the-protocol', async ({ page, url }) => {
  const bad = { model: 'DeepSeek-V4.1-Flash', messages: [{ role: 'wizard', content: 'Hi' }] };
  const cases = [
    ['chat', '/v1/chat/completions', JSON.stringify(bad)],
    ['messages', '/v1/messages', JSON.stringify({ ...bad, max_tokens: 9 })],
    ['responses', '/v1/responses', '{"model": "DeepSeek-V4.1-Flash", "input": 5}'],
    ['chat', '/v1/chat/completions', '{"model": '],
    ['chat', '/v1/chat/completions', '{"model": "nobody", "messages": [{"role": "user", "content": "Hi"}]}'],
  ];
  await open(page, url);
  for (const [protocol, path, body] of cases) {
    await page.getByLabel('Protocol', { exact: true }).selectOption(protocol);
    await page.getByLabel('Request body (JSON)').fill(body);
    await render(page);
    const error = page.getByRole('alert').filter({ hasText: 'The request is refused' });
    await error.waitFor();
    assert.ok(await page.locator('#render-result').isHidden());
    const served = await fetch(url + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
    assert.ok((await error.textContent()).includes(`(status ${served.status})`));
    assert.deepEqual(JSON.parse(await error.locator('pre').textContent()), await served.json(), body);
  }
  await page.getByLabel('Example').first().selectOption('Tools and a result');
  await render(page);
  assert.ok(await page.locator('#render-error').isHidden());
});

scenario('warns-of-what-has-no-effect', async ({ page, url }) => {
  await open(page, url);
  await page.getByLabel('Request body (JSON)').fill('{"model": "DeepSeek-V4.1-Flash", "sparkle": 1, "messages": [{"role": "user", "content": "Hi"}]}');
  await render(page);
  assert.ok((await page.locator('#render-warnings').textContent()).includes('sparkle'));
});

scenario('shows-tool-calls-in-every-protocol', async ({ page, url }) => {
  await open(page, url);
  await page.getByLabel('Example').nth(1).selectOption('Tool calls');
  for (const piece of ['1', '3', '0']) {
    await page.getByLabel('Tokens at a time').fill(piece);
    await parse(page);
    const chat = await responseOf(page, 'chat');
    const { message, finish_reason: reason } = chat.choices[0];
    assert.equal(reason, 'tool_calls');
    assert.equal(message.reasoning_content, 'I should look it up.');
    assert.deepEqual(message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
      [['get_weather', { city: 'Oslo' }], ['get_weather', { city: 'Bergen', days: 3 }]]);
    const deltas = (await eventsOf(page, 'chat')).flatMap(({ choices }) => choices).flatMap(({ delta }) => delta.tool_calls ?? []);
    assert.equal(deltas.filter((call) => call.index === 1).map((call) => call.function?.arguments ?? '').join(''), message.tool_calls[1].function.arguments);

    const messages = await responseOf(page, 'messages');
    assert.deepEqual(messages.content.map(({ type }) => type), ['thinking', 'text', 'tool_use', 'tool_use']);
    assert.equal(messages.stop_reason, 'tool_use');
    const names = (await eventsOf(page, 'messages')).map(({ type }) => type);
    assert.equal(names[0], 'message_start');
    assert.equal(names.at(-1), 'message_stop');
    assert.deepEqual(await page.locator('#answers section[data-protocol=messages] .events b').allTextContents(), names);

    const responses = await responseOf(page, 'responses');
    assert.deepEqual(responses.output.map(({ type }) => type), ['reasoning', 'message', 'function_call', 'function_call']);
    assert.deepEqual((await eventsOf(page, 'responses')).at(-1).response.output, responses.output);
  }
});

scenario('the-end-and-the-beginning-can-be-chosen', async ({ page, url }) => {
  await open(page, url);
  await page.getByLabel('Output of the model').fill('Cut <of');
  await page.getByLabel('The prompt ended').selectOption('off');
  await page.getByLabel('The output ended with').selectOption('length');
  await parse(page);
  assert.deepEqual(['Cut <of', 'length'], await responseOf(page, 'chat').then(({ choices: [{ message, finish_reason: reason }] }) => [message.content, reason]));
  assert.equal((await responseOf(page, 'messages')).stop_reason, 'max_tokens');
  assert.equal((await responseOf(page, 'responses')).status, 'incomplete');
  await page.getByLabel('The prompt ended').selectOption('on');
  await parse(page);
  assert.equal((await responseOf(page, 'chat')).choices[0].message.reasoning_content, 'Cut <of');
});

scenario('an-output-can-answer-the-request-above', async ({ page, url }) => {
  await open(page, url);
  await page.getByLabel('Protocol', { exact: true }).selectOption('responses');
  await page.getByLabel('Request body (JSON)').fill('{"model": "DeepSeek-V4.1-Flash", "input": "Hi", "user": "me", "reasoning": {"effort": "none"}}');
  await page.getByLabel('as the answer to the request above').check();
  await page.getByLabel('The prompt ended').selectOption('');
  await page.getByLabel('Output of the model').fill('Hello!');
  await parse(page);
  assert.equal(await page.locator('#answers > section').count(), 1);
  const response = await responseOf(page, 'responses');
  assert.equal(response.user, 'me');
  assert.equal(response.output[0].content[0].text, 'Hello!');
  await page.getByLabel('Request body (JSON)').fill('{');
  await parse(page);
  assert.ok((await page.locator('#answers .error').textContent()).includes('The request above cannot be read'));
});

scenario('markup-stays-text-everywhere', async ({ page, url, complaints }) => {
  const evil = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  const check = async () => {
    assert.equal(await page.locator('main img, main script, main svg, main iframe').count(), 0);
    assert.equal(await page.locator('body > script').count(), 1);
  };
  await open(page, url);
  // In a message, a tool, a schema, a field that is warned of, a model's name, and in what is no JSON at all.
  const request = {
    model: 'DeepSeek-V4.1-Flash', [evil]: evil, messages: [{ role: 'user', content: evil }],
    tools: [{ type: 'function', function: { name: 'f', description: evil, parameters: { type: 'object', properties: { [evil]: { type: 'string', description: evil } } } } }],
  };
  const body = page.getByLabel('Request body (JSON)');
  await body.fill(JSON.stringify(request));
  await render(page);
  for (const id of ['prompt', 'constraint', 'conversation', 'render-warnings']) {
    assert.ok((await page.locator(`#${id}`).textContent()).includes('<img src=x onerror='), id);
  }
  await page.locator('#tokens button', { hasText: /./ }).nth(5).hover();
  await check();
  for (const bad of [evil, JSON.stringify({ ...request, model: evil }), JSON.stringify({ ...request, messages: [{ role: evil, content: 'Hi' }] })]) {
    for (const protocol of ['chat', 'messages', 'responses']) {
      await page.getByLabel('Protocol', { exact: true }).selectOption(protocol);
      await body.fill(bad);
      await render(page);
      await page.locator('#render-error').waitFor();
      await check();
    }
  }
  const D = '｜DSML｜';
  const output = page.getByLabel('Output of the model');
  await output.fill(`${evil}</think>${evil}<${D} calls>\n<${D} invoke name="${evil.replaceAll('"', "'")}">\n<${D} parameter name="a" string="true">${evil}</${D} parameter>\n</${D} invoke>\n</${D} calls>`);
  await parse(page);
  assert.ok((await page.locator('#answers').textContent()).includes('<img src=x onerror='));
  await check();
  await page.getByLabel('API key').fill(evil);
  await parse(page);
  await render(page);
  await check();
  // And the browser would refuse it if the page tried.
  assert.deepEqual(complaints, []);
  const told = page.waitForEvent('console');
  const refused = await page.evaluate(() => {
    try {
      document.querySelector('main').innerHTML = '<b>x</b>';
      return false;
    } catch {
      return true;
    }
  });
  assert.ok(refused, 'markup can be put in');
  assert.match((await told).text(), /TrustedHTML/);
  complaints.length = 0;
});

scenario('works-with-the-keyboard-alone', async ({ page, url }) => {
  await open(page, url);
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
  const tabTo = async (wanted) => {
    for (let presses = 0; presses < 30; ++presses) {
      await page.keyboard.press('Tab');
      if (await focused() === wanted) return;
    }
    assert.fail(`Tab does not reach ${wanted}`);
  };
  await tabTo('protocol');
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.getByLabel('Protocol', { exact: true }).inputValue(), 'messages');
  await tabTo('request');
  await page.keyboard.press('Control+Enter');
  await page.locator('#render-result').waitFor();
  assert.match(await page.locator('#render-status').textContent(), /tokens\.$/);
  await tabTo('prompt');
  await tabTo(await page.locator('#tokens button').first().textContent());
  const info = page.locator('#token-info');
  assert.match(await info.textContent(), /token 1 of/);
  await page.keyboard.press('ArrowRight');
  assert.match(await info.textContent(), /token 2 of/);
  await page.keyboard.press('End');
  const count = await page.locator('#tokens button').count();
  assert.ok((await info.textContent()).includes(`token ${count} of ${count}`));
  await page.keyboard.press('ArrowRight');
  assert.ok((await info.textContent()).includes(`token ${count} of ${count}`));
  // The tokens are one stop, not hundreds.
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'constraint');
  await tabTo('output');
  await page.keyboard.press('Control+Enter');
  await page.locator('#answers section').first().waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Show the answers');
});

scenario('every-control-has-a-name', async ({ page, url }) => {
  await open(page, url);
  await render(page);
  await parse(page);
  const nameless = await page.evaluate(() => [...document.querySelectorAll('input, select, textarea, button, [tabindex="0"], section')]
    .filter((one) => !one.hidden && !(one.labels && one.labels.length) && !one.textContent.trim() && !one.getAttribute('aria-label') &&
      !document.getElementById(one.getAttribute('aria-labelledby')))
    .map((one) => one.outerHTML));
  assert.deepEqual(nameless, []);
  const twice = await page.evaluate(() => {
    const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
    return ids.filter((id, at) => ids.indexOf(id) !== at);
  });
  assert.deepEqual(twice, []);
  await page.getByRole('region', { name: 'Request to prompt' }).waitFor();
});

const PHONE = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
scenario('fits-a-phone', async ({ page, url }) => {
  await open(page, url);
  await noSidewaysScroll(page);
  await page.getByLabel('Request body (JSON)').fill(JSON.stringify({
    model: 'DeepSeek-V4.1-Flash', messages: [{ role: 'user', content: 'x'.repeat(500) }, { role: 'user', content: '日本語'.repeat(50) }],
  }));
  await page.getByRole('button', { name: 'Show the prompt' }).tap();
  await page.locator('#render-result').waitFor();
  await page.locator('#tokens button').first().tap();
  assert.match(await page.locator('#token-info').textContent(), /^special token 1 of/);
  await page.getByLabel('Output of the model').fill(`${'y'.repeat(400)}</think>${'z'.repeat(400)}`);
  await parse(page);
  await page.locator('#answers section').nth(2).waitFor();
  await noSidewaysScroll(page);
}, PHONE);

// The contrast of two colours as WCAG 2 defines it.
const contrast = (page, selector) => page.locator(selector).first().evaluate((one) => {
  const read = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => [red, green, blue].map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  let back = one;
  while (back.parentElement && read(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
  const pair = [light(read(getComputedStyle(one).color)), light(read(getComputedStyle(back).backgroundColor))];
  return { ratio: (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), back: pair[1] };
});
for (const colorScheme of ['light', 'dark']) {
  scenario(`is-readable-in-${colorScheme}`, async ({ page, url }) => {
    await open(page, url);
    await page.getByLabel('Request body (JSON)').fill('{"model": "DeepSeek-V4.1-Flash", "sparkle": 1, "messages": [{"role": "user", "content": "Hi"}]}');
    await render(page);
    await parse(page);
    for (const selector of ['body', 'small', 'textarea', 'select', '#prompt', '#prompt mark', '#tokens button', '#tokens button.special',
      'form button', '#render-warnings', '#render-warnings li', '.events li']) {
      const { ratio, back } = await contrast(page, selector);
      assert.ok(ratio >= 4.5, `${selector}: contrast ${ratio}`);
      if (selector === 'body') assert.equal(back > 0.5, colorScheme === 'light');
    }
    await page.getByLabel('Request body (JSON)').fill('{');
    await render(page);
    assert.ok((await contrast(page, '#render-error strong')).ratio >= 4.5);
  }, { colorScheme });
}

scenario('asks-for-the-key', async ({ page, guardedUrl, key }) => {
  await open(page, guardedUrl);
  const alert = page.getByRole('alert').filter({ hasText: 'The API key is missing or wrong' });
  for (const wrong of ['', 'wrong']) {
    await page.getByLabel('API key').fill(wrong);
    await render(page);
    await alert.waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'key');
    assert.equal(await page.getByLabel('API key').getAttribute('aria-invalid'), 'true');
    assert.ok(await page.locator('#render-result').isHidden());
  }
  await page.getByLabel('API key').fill(key);
  await render(page);
  await page.locator('#render-result').waitFor();
  assert.ok(await alert.isHidden());
  assert.equal(await page.getByLabel('API key').getAttribute('aria-invalid'), null);
  await parse(page);
  assert.equal(await page.locator('#answers > section').count(), 3);
  assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length + document.cookie.length), 0);
});

scenario('says-that-the-server-is-away', async ({ page, url }) => {
  await open(page, url);
  await page.route('**/recipe/render', (route) => route.abort());
  await render(page);
  await page.getByRole('alert').filter({ hasText: 'The server cannot be reached' }).waitFor();
});

scenario('long-prompts-come-in-portions', async ({ page, url }) => {
  await open(page, url);
  const content = Array.from({ length: 3000 }, (_, index) => `word${index}`).join(' ');
  await page.getByLabel('Request body (JSON)').fill(JSON.stringify({ model: 'DeepSeek-V4.1-Flash', messages: [{ role: 'user', content }] }));
  await render(page);
  const total = Number((await page.locator('#render-status').textContent()).match(/(\d+) tokens/)[1]);
  assert.ok(total > 3000);
  assert.equal(await page.locator('#tokens button').count(), 1000);
  while (await page.locator('#more-tokens').isVisible()) {
    await page.locator('#more-tokens').click();
  }
  assert.equal(await page.locator('#tokens button').count(), total);
  assert.equal(JSON.parse(await page.locator('#conversation').textContent()).messages[0].content, content);
});
