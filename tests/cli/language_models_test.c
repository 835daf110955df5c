/* language_models_test.c -- ptb and char_rnn: they train on small texts, in one process, on towers,
 * and on parameter servers; go on from checkpoints; draw text; and say what is wrong with texts and
 * flags. */
#include "command.h"

#include <leat/leat.h>

static char dir[64];

/* Runs a command line in a directory of its own, where no data set is found. $B is the build
 * directory. */
static void run(int code, const char *words, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    command c = command_start("cd %s && B=" LEAT_BINARY_DIR
                              " && export LEAT_DATA_CACHE=%s/cache LEAT_DATA_URL=none && %s",
                              dir, dir, line);
    expect("", command_end(c), code, words);
}

static void begin(void)
{
    strcpy(dir, "/tmp/leat-language-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
}

static void end(void)
{
    char line[128];
    snprintf(line, sizeof(line), "rm -rf %s", dir);
    CHECK_INT(system(line), 0);
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
}

static void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

/* Lines of six words, each of which is often followed by the same one. */
static void write_lines(const char *name, int lines)
{
    static const char *const words[] = {"the",  "cat", "dog", "saw", "a",
                                        "bird", "and", "ran", "home"};
    static char text[1 << 16];
    size_t n = 0;
    for (int i = 0, at = 0; i < lines; i++)
        for (int k = 0; k < 6; k++) {
            n += (size_t)sprintf(text + n, " %s%s", words[at], k == 5 ? " \n" : "");
            at = (at * 2 + 1 + (i * 6 + k) % 5 / 4) % 9;
        }
    write_file(name, text, n);
}

static void write_texts(void)
{
    write_lines("ptb.train.txt", 120);
    write_lines("ptb.valid.txt", 40);
    write_lines("ptb.test.txt", 20);
}

/* The number behind the last of these words in the output; -1: there is none. */
static double number_after(const char *words)
{
    const char *at = output, *last = NULL;
    while ((at = strstr(at, words)) != NULL)
        last = at += strlen(words);
    return last ? atof(last) : -1;
}

#define PTB "$B/models/ptb --data_path . --model test --seed 1 "
#define SMALL PTB "--batch_size 4 --hidden_size 8 "

/* The lines of the published program; a second run goes on; the model has learnt something. */
static void words(void)
{
    begin();
    write_texts();
    run(0, "Epoch: 1 Learning rate: 1.000\n0.000 perplexity: ", SMALL "--save_path log");
    saw(" wps\n");
    saw("Epoch: 1 Train Perplexity: ");
    saw("Epoch: 1 Valid Perplexity: ");
    saw("Saving model to log.\n");
    const double first = number_after("Test Perplexity: ");
    CHECK(first > 1 && first < 12);
    run(0, "going on from step 104\nEpoch: 2 Learning rate: 0.500\n",
        SMALL "--save_path log --max_max_epoch 4");
    saw("Epoch: 4 Learning rate: 0.125\n");
    CHECK(!strstr(output, "Epoch: 1 "));
    const double last = number_after("Test Perplexity: ");
    CHECK(last > 1 && last < first);
    /* All epochs are done: the model is only measured. */
    run(0, "going on from step 416\nTest Perplexity: ", SMALL "--save_path log");
    CHECK_NEAR(number_after("Test Perplexity: "), last, 1e-3);
    run(0, "the cat ", SMALL "--save_path log --sample 30 --prime 'the cat'");
    CHECK(!strstr(output, "<eos>") && !strstr(output, "Epoch"));
    end();
}

/* A checkpoint in the middle of an epoch: the next run does the rest of it. block and fused have
 * the same variables. */
static void goes_on(void)
{
    begin();
    write_texts();
    command c = command_start("cd %s && exec " LEAT_BINARY_DIR "/models/ptb --data_path . "
                              "--model test --batch_size 1 --num_steps 1 --hidden_size 8 "
                              "--max_max_epoch 100000 --save_path log --save_secs 0.2",
                              dir);
    CHECK(command_read(c, "Epoch: 3 Learning"));
    kill(c.pid, SIGKILL);
    command_end(c);
    run(0, "going on from step ", SMALL "--save_path log --rnn_mode fused --max_max_epoch 0");
    const int64_t step = (int64_t)number_after("going on from step ");
    CHECK(step >= 839 * 2);
    run(1, "Key Model/RNN/multi_rnn_cell/cell_0/basic_lstm_cell/bias not found in checkpoint",
        SMALL "--save_path log --rnn_mode basic");
    end();
}

/* Two towers do what one does with twice the batch. */
static void towers(void)
{
    begin();
    write_texts();
    run(0, "Test Perplexity: ", SMALL "--max_max_epoch 2");
    const double one = number_after("Test Perplexity: ");
    run(0,
        "Test Perplexity: ", PTB "--hidden_size 8 --batch_size 2 --num_gpus 2 --max_max_epoch 2");
    CHECK_NEAR(number_after("Test Perplexity: "), one, 0.01);
    run(2, "--num_gpus: at most 64", SMALL "--num_gpus 65");
    end();
}

static void cluster(void)
{
    begin();
    write_texts();
    run(0, "[worker/1] Epoch: 2 Train Perplexity: ",
        "$B/leat launch --ps 2 --workers 2 -- " SMALL "--max_max_epoch 2 --save_path log");
    saw("[worker/0] Epoch: 2 Valid Perplexity: ");
    saw("all done");
    const double test = number_after("Test Perplexity: ");
    CHECK(test > 1 && test < 12);
    /* embedding and softmax are in two parts, which one process joins. */
    run(0, "Model/embedding  float [10,8], 2 slices",
        "$B/leat show $(ls log/model.ckpt-*.index | tail -n 1)");
    saw("Model/softmax_w  float [8,10], 2 slices");
    run(0, "going on from step 208\nTest Perplexity: ", SMALL "--save_path log");
    CHECK_NEAR(number_after("Test Perplexity: "), test, 1e-2);
    run(0, "a ", SMALL "--save_path log --sample 20");
    run(2, "a worker of a cluster has one tower",
        SMALL "--job_name worker --task_index 0 --num_gpus 2");
    end();
}

static void bad_words(void)
{
    begin();
    run(2, "Must set --data_path to PTB data directory", "$B/models/ptb");
    run(2, "--data_path: . has no ptb.train.txt", PTB);
    write_texts();
    run(2, "--model is small, medium, large or test, not huge", PTB "--model huge");
    run(2, "rnn_mode is basic, block or fused, not cudnn", PTB "--rnn_mode cudnn");
    run(2, "did you mean --num_steps?", PTB "--num_step 3");
    run(2, "num_steps must be 1 to 1000, not 2000", PTB "--num_steps 2000");
    run(1, "ptb.train.txt is too short: it has 840 words of the vocabulary, and 400 sequences",
        PTB "--batch_size 400");
    run(1, "--sample wants --save_path", PTB "--sample 1");
    run(1, "log has no checkpoint", PTB "--sample 1 --save_path log");
    run(1, "The first op: ", SMALL "--learning_rate 1e38");
    saw("Model diverged: ");
    saw("Tensor had ");
    write_text("ptb.valid.txt", "");
    run(1, "ptb.valid.txt is no text", PTB);
    write_file("ptb.valid.txt", "\0\1\2 binary", 10);
    run(1, "ptb.valid.txt is no text", PTB);
    write_text("ptb.valid.txt", " the cat \n");
    run(1, "ptb.valid.txt is too short: it has 3 words", PTB);
    write_text("ptb.valid.txt", " none of them known to it \n of it \n");
    run(1, "ptb.valid.txt is too short: it has 2 words", PTB); /* <eos> */
    /* One line, and one word. */
    write_text("ptb.train.txt", "a a a a a a a a a a a a a a a a");
    write_text("ptb.valid.txt", "a a a a a a a a a a a a");
    write_text("ptb.test.txt", "a a");
    run(0, "Test Perplexity: 1.000", SMALL "--save_path one");
    run(0, "a a a a \n", SMALL "--save_path one --sample 4 --prime ''");
    end();
}

#define CHARS "$B/models/char_rnn --hidden_size 32 --batch_size 8 --num_steps 20 "

static void characters(void)
{
    begin();
    write_lines("verse.txt", 200);
    run(0, "verse.txt: ", CHARS "--text verse.txt --train_steps 150 --save_path log");
    saw("---- step 150, loss on text that it has not read: ");
    CHECK(number_after("has not read: ") < 2);
    run(0, "going on from step 150\n", CHARS "--text verse.txt --train_steps 250 --save_path log");
    CHECK(number_after("has not read: ") < 1.5);
    run(0, "the c", CHARS "--text verse.txt --save_path log --sample 50 --prime 'the c'");
    run(1, "the text does not have the character \"Z\"",
        CHARS "--text verse.txt --save_path log --sample 5 --prime aZ");
    run(1, "--sample wants --save_path", CHARS "--text verse.txt --sample 5");
    run(1, "none has no checkpoint", CHARS "--text verse.txt --sample 5 --save_path none");
    /* Without a text, and without a network, it draws one. */
    run(0, "no Tiny Shakespeare found; training on verses that this program draws itself",
        CHARS "--train_steps 2");
    end();
}

static void bad_characters(void)
{
    begin();
    run(1, "--text: none.txt cannot be opened", CHARS "--text none.txt");
    run(1, "--text: . cannot be read", CHARS "--text .");
    write_text("a.txt", "");
    run(1, "--text: a.txt is empty", CHARS "--text a.txt");
    write_file("a.txt", "some\0thing", 10);
    run(1, "--text: a.txt is no text: byte 4 is 0", CHARS "--text a.txt");
    write_text("a.txt", "one line");
    run(1, "the text is too short: 8 sequences of 20 characters", CHARS "--text a.txt");
    run(0, "step 3",
        "$B/models/char_rnn --text a.txt --batch_size 1 --num_steps 2 "
        "--hidden_size 4 --train_steps 3");
    write_text("a.txt", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"); /* a vocabulary of one character */
    run(0, "aaaaaaaaaa",
        "$B/models/char_rnn --text a.txt --batch_size 1 --num_steps 2 "
        "--hidden_size 4 --train_steps 3");
    write_lines("verse.txt", 100);
    run(1, "The first op: ", CHARS "--text verse.txt --train_steps 20 --learning_rate 1e38");
    saw("Model diverged: ");
    run(2, "keep_prob must be above 0 and at most 1, not 0", CHARS "--keep_prob 0");
    run(2, "rnn_mode is basic, block or fused, not gru", CHARS "--rnn_mode gru");
    run(2, "did you mean --temperature?", CHARS "--temperatur 1");
    end();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"words", words}, {"goes_on", goes_on}, {"towers", towers},
               {"cluster", cluster}, {"bad_words", bad_words}, {"characters", characters},
               {"bad_characters", bad_characters});
}
