#include "cli/command.h"

int main(int argc, char** argv) {
  return hadal::cli::run(argc, argv);
}
