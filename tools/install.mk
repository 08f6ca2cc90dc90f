# SPDX-License-Identifier: MIT
# Installing, and looking at the sources.  Included by the Makefile.
#
# LIBDIR is compiled into the command as the last place to look for the library, after its own
# folder and ../lib, and DATADIR into both as the place of presets: give the same PREFIX, LIBDIR and
# DATADIR to `make` and to `make install` where they differ.

BINDIR ?= $(PREFIX)/bin
DOCDIR ?= $(PREFIX)/share/doc/curtsy
MANDIR ?= $(PREFIX)/share/man
INSTALL ?= install

MANUALS := $(sort $(wildcard tools/man/*.[1-9]))
PRESETS := $(sort $(wildcard tools/presets/*.ini))

manual_path = $(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))
INSTALLED = $(LIBDIR)/libcurtsy.so $(BINDIR)/curtsy $(foreach manual,$(MANUALS),$(call manual_path,$(manual))) \
            $(addprefix $(DATADIR)/,$(notdir $(PRESETS))) $(DOCDIR)/ratelimit.ini

# make takes a path with a blank in it for two, and rm would be given both.
BLANK := $(subst x,,x x)
TAB := $(subst x,,x	x)
has_blank = $(findstring $(BLANK),$(1))$(findstring $(TAB),$(1))
ifneq ($(filter install uninstall,$(MAKECMDGOALS)),)
$(foreach name,DESTDIR PREFIX LIBDIR BINDIR DATADIR DOCDIR MANDIR BUILD,$(if $(call has_blank,$($(name))),\
  $(error $(name) = "$($(name))": a path with a blank in it cannot be installed to or from)))
endif

# By rename: programs that run have the old file mapped, and none may ever load half a file.
# $(call place,MODE,FROM,TO)
define place
$(INSTALL) -d $(DESTDIR)$(dir $(3))
$(INSTALL) -m $(1) $(2) $(DESTDIR)$(dir $(3)).$(notdir $(3)).new
mv -f $(DESTDIR)$(dir $(3)).$(notdir $(3)).new $(DESTDIR)$(3)

endef

# The library last: what it is found by is in place when it is.
install: all
	$(call place,755,$(BUILD)/curtsy,$(BINDIR)/curtsy)
	$(foreach manual,$(MANUALS),$(call place,644,$(manual),$(call manual_path,$(manual))))
	$(foreach preset,$(PRESETS),$(call place,644,$(preset),$(DATADIR)/$(notdir $(preset))))
	$(call place,644,ratelimit.ini,$(DOCDIR)/ratelimit.ini)
	$(call place,644,$(BUILD)/libcurtsy.so,$(LIBDIR)/libcurtsy.so)

# Of the folders only those of our own, and only when empty.
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	-@rmdir $(DESTDIR)$(DATADIR) $(DESTDIR)$(DOCDIR) 2>/dev/null || true

C_SOURCES := $(CORE_SOURCES) $(SHIM_SOURCES) $(TOOL_SOURCES)
C_TESTS := $(wildcard tests/unit/*.c tests/stress/*.c tests/fuzz/*.c)
C_FILES := $(sort $(C_SOURCES) $(C_TESTS) $(wildcard core/*.h core/system/*.h shim/*.h tools/*/*.[ch] tests/*/*.[ch]))
SHELL_FILES := $(sort .ci/run $(wildcard tools/*.sh tools/*/*.sh tests/*.sh tests/*/*.sh))
tidy_flags = -std=gnu11 -D_GNU_SOURCE -DCURTSY_VERSION='"$(VERSION)"' -DCURTSY_LIBDIR='"$(LIBDIR)"' \
  -DCURTSY_DATADIR='"$(DATADIR)"' -I.

# The analyser does not know that cmocka's assertions do not return; tests of what is static include it.
lint:
	clang-format --dry-run -Werror $(C_FILES)
	clang-tidy --quiet $(C_SOURCES) -- $(tidy_flags)
	clang-tidy --quiet --checks='-clang-analyzer-*,-bugprone-suspicious-include' $(C_TESTS) -- $(tidy_flags)
	shellcheck $(SHELL_FILES)
	mandoc -T lint -W warning $(MANUALS)

.PHONY: install uninstall lint
